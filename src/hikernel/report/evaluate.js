// f(x) from summary.function, with every digit: the twin of explain/portable.py in the browser.
// Pure functions without a page, so that they can be tested anywhere.
//
// A row is a list with one entry per input: a number, the position of a category (-1 for one that
// is not known), 0 or 1 for a boolean, days since 1970-01-01 for a date, the length in days for a
// duration, null where the value is missing.
"use strict";
globalThis.HK = globalThis.HK || {};

HK.evaluate = (() => {
  const FAR = 1e30; // beyond, only the leading power of a polynomial counts

  const LARGEST = Number.MAX_VALUE;
  const DAY = 86400000; // milliseconds

  const clip = (x, low, high) => Math.min(Math.max(x, low), high);
  const scaled = (spec, x) => clip((x - spec.center) / spec.scale, -LARGEST, LARGEST);
  const single = (values) => values.map((value) => [value]);

  function unit(length, position) {
    const vector = new Array(length).fill(0);
    if (position >= 0 && position < length) vector[position] = 1;
    return vector;
  }

  // p_0 = 1, p_{j+1} = (z p_j - what lies along the levels below, taken away twice) / norms[j].
  function orthonormal(spec, at) {
    const z = clip(at, spec.low, spec.high);
    const levels = [1];
    spec.norms.forEach((norm, j) => {
      let candidate = z * levels[j];
      for (const pass of spec.projections[j]) {
        for (let i = 0; i <= j; i += 1) candidate -= pass[i] * levels[i];
      }
      levels.push(candidate / norm);
    });
    return single(levels);
  }

  // h_{j+1} = t sqrt(2 ratio / (j + 1)) h_j - ratio sqrt(j / (j + 1)) h_{j-1}.
  function hermite(t, ratio, start, n) {
    const terms = [start];
    for (let j = 0; j < n - 1; j += 1) {
      let next = t * terms[j] * Math.sqrt((2 * ratio) / (j + 1));
      if (j > 0 && Math.abs(t) <= FAR) next -= terms[j - 1] * (ratio * Math.sqrt(j / (j + 1)));
      terms.push(next);
    }
    return terms;
  }

  function rotated(vector, matrix) {
    return matrix[0].map((_, k) => vector.reduce((sum, value, i) => sum + value * matrix[i][k], 0));
  }

  function interpolated(knots, heights, z) {
    const last = knots.length - 1;
    if (z <= knots[0]) return single([1, ...heights[0]]);
    if (z >= knots[last]) return single([1, ...heights[last]]);
    let [low, high] = [0, last]; // knots[low] <= z < knots[high]
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (knots[middle] <= z) low = middle;
      else high = middle;
    }
    const along = z - knots[low];
    const slope = (left, j) => (heights[high][j] - left) / (knots[high] - knots[low]);
    return single([1, ...heights[low].map((left, j) => slope(left, j) * along + left)]);
  }

  function kernel({ name, b }, p, z) {
    if (name === "gaussian") return Math.exp(-b * (p - z) ** 2);
    if (name === "laplace") return Math.exp(-b * Math.abs(p - z));
    if (name !== "cubic") throw new Error(`unknown kernel ${name}`);
    if (!(p * z > 0)) return 0;
    const small = Math.min(Math.abs(p), Math.abs(z));
    return small ** 2 * (3 * Math.max(Math.abs(p), Math.abs(z)) - small);
  }

  // Solves L u = k(pivots, z) from the top, and cuts u into levels.
  function lowRank(spec, z) {
    let u = [];
    spec.factor.forEach((row, i) => {
      const known = u.reduce((sum, value, k) => sum + row[k] * value, 0);
      u.push((kernel(spec.kernel, spec.pivots[i], z) - known) / row[i]);
    });
    if (spec.rotation) u = rotated(u, spec.rotation);
    const levels = spec.before.map((what) => [what === "one" ? 1 : z]);
    let start = 0;
    for (const width of spec.widths) {
      levels.push(u.slice(start, start + width));
      start += width;
    }
    return levels;
  }

  function mehler(spec, z) {
    const n = spec.n_single + (spec.rotation ? spec.rotation.length : 0);
    const t = spec.root * clip(z, -1e150, 1e150);
    const terms = hermite(t, spec.ratio, spec.height * Math.exp(-spec.decay * z * z), n);
    const levels = single(terms.slice(0, spec.n_single));
    if (spec.rotation) levels.push(rotated(terms.slice(spec.n_single), spec.rotation));
    return spec.constant ? [[1], ...levels] : levels;
  }

  // Level j is a point on a circle that goes around j times in a period.
  function periodic(spec, x) {
    const phase = (x / spec.period) % 1;
    return [[1], ...spec.scales.map((scale, i) => {
      const angle = 2 * Math.PI * (i + 1) * phase;
      const [cosine, sine] = spec.means[i];
      return [scale * (Math.cos(angle) - cosine), scale * (Math.sin(angle) - sine)];
    })];
  }

  // What a variable is of a date x, in days since 1970-01-01, which was a Thursday.
  function datePart({ part, start }, x) {
    if (part === "length") return x;
    if (part === "days") return x - start;
    const day = Math.floor(x);
    if (part === "hour") return Math.round(24e6 * (x - day)) / 1e6;
    if (part === "weekday") return (((day + 3) % 7) + 7) % 7;
    const year = new Date(day * DAY).getUTCFullYear();
    if (part === "year") return year;
    const first = new Date(0);
    first.setUTCFullYear(year, 0, 1); // Date.UTC takes the year 99 for 1999
    return day - first.getTime() / DAY + 1;
  }

  // All levels at x, level 0 first; each is a list.
  const KINDS = {
    constant: () => [[1]],
    lookup(spec, x) {
      if (spec.table === "category") return [[1], unit(spec.codes.length, spec.codes.indexOf(x))];
      return [[1], unit(spec.cuts.length + 1, spec.cuts.filter((cut) => cut < x).length)];
    },
    orthonormal: (spec, x) => orthonormal(spec, scaled(spec, x)),
    asinh(spec, x) {
      return levels(spec.inner, Math.asinh((scaled(spec, x) - spec.median) / spec.spread));
    },
    interpolation: (spec, x) => interpolated(spec.knots, spec.heights, scaled(spec, x)),
    powers: (spec, x) => single(spec.factors.map((factor, j) => factor * scaled(spec, x) ** j)),
    hermite: (spec, x) => single(hermite(scaled(spec, x), spec.ratio, 1, spec.n)),
    mehler: (spec, x) => mehler(spec, scaled(spec, x)),
    periodic,
    kernel: (spec, x) => lowRank(spec, scaled(spec, x)),
    branches(spec, x) {
      const all = [[1]];
      spec.parts.forEach((part, k) => {
        levels(part, x).slice(1).forEach((level, i) => {
          all[spec.starts[k] + i] = level;
        });
      });
      return all;
    },
  };

  function levels(spec, x) {
    if (!KINDS[spec.kind]) throw new Error(`unknown levels ${spec.kind}`);
    return KINDS[spec.kind](spec, x);
  }

  // The levels of a variable in a row; null stands for zero.
  function variableLevels(variable, row) {
    const x = row[variable.input];
    if (variable.missing) return levels(variable.levels, x === null ? 1 : 0);
    if (x !== null) return levels(variable.levels, variable.part ? datePart(variable, x) : x);
    const { absent } = variable.levels;
    return [absent === undefined ? [1] : [absent].flat()];
  }

  function outer(factors) {
    const times = (product, factor) => product.flatMap((a) => factor.map((b) => a * b));
    return factors.reduce(times, [1]);
  }

  // One number per output for each term; terms with a missing variable are zero.
  function termValues(fn, given) {
    // A category that is not known has no place in an order, and counts as missing.
    const row = given.map((x, i) => (x === -1 && fn.inputs[i].ordered ? null : x));
    const known = fn.variables.map((variable) => variableLevels(variable, row));
    return fn.terms.map((term) => {
      const factors = term.factors.map(([variable, level]) => known[variable][level]);
      if (factors.some((factor) => factor === undefined)) return term.coef.map(() => 0);
      const product = outer(factors);
      return term.coef.map((coef) => coef.reduce((sum, value, i) => sum + value * product[i], 0));
    });
  }

  // {f, effects, rest}: f per output; what each effect adds to each output; what belongs to none.
  function evaluate(fn, row, nEffects) {
    const effects = Array.from({ length: nEffects }, () => fn.intercept.map(() => 0));
    const rest = fn.intercept.map(() => 0);
    const f = [...fn.intercept];
    termValues(fn, row).forEach((values, t) => {
      const { effect } = fn.terms[t];
      const target = effect === null || effect === undefined ? rest : effects[effect];
      values.forEach((value, k) => {
        target[k] += value;
        f[k] += value;
      });
    });
    return { f, effects, rest };
  }

  // What `predict` and `predict_proba` say: {value} for numbers, {label, probabilities} for
  // classes.
  function predict(link, f, classes) {
    const best = (scores) => classes[scores.indexOf(Math.max(...scores))];
    if (link.kind === "identity" || link.kind === "hazard") return { value: f[0] };
    if (link.kind === "exp") return { value: Math.exp(f[0]) };
    if (link.kind === "sign") return { label: classes[f[0] > 0 ? 1 : 0] };
    if (link.kind === "argmax") return { label: best(f) };
    let probabilities;
    if (link.kind === "logistic") {
      probabilities = [1 / (1 + Math.exp(f[0])), 1 / (1 + Math.exp(-f[0]))];
    } else if (link.kind === "softmax") {
      const top = Math.max(...f);
      const parts = f.map((score) => Math.exp(score - top));
      const sum = parts.reduce((a, b) => a + b, 0);
      probabilities = parts.map((part) => part / sum);
    } else {
      throw new Error(`unknown link ${link.kind}`);
    }
    return { probabilities, label: best(probabilities) };
  }

  return { levels, termValues, evaluate, predict };
})();
