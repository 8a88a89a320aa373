// One input of the what-if panel: a number or a date with slider and field, a list of categories,
// "missing".
"use strict";

HK.inputs = (() => {
  const { el, name } = HK.dom;
  const STEPS = 200;

  // A value of the summary as the evaluator wants it: a number, a position, 0 or 1, or null.
  function value(input, given) {
    if (given === null || given === undefined) return null;
    if (input.kind === "date") return minutes(given);
    if (isNumber(input)) return tidy(input, Number(given));
    if (input.kind === "boolean") return [true, 1, "True"].includes(given) ? 1 : 0;
    return input.labels.indexOf(String(given));
  }

  // Returns {element, reset}; `change(value)` is called with every new value.
  function create(input, position, initial, change) {
    const kind = input.kind === "date" ? "input is-date" : "input";
    const box = el("div", { class: kind, "data-input": position });
    const id = HK.dom.id("input");
    const first = initial ?? fallback(input);
    const make = input.kind === "date" ? dateControl
      : isNumber(input) ? numberControl : listControl;
    const control = make(input, id, first, send);
    const missing = input.missing_allowed
      ? el("input", { type: "checkbox", checked: initial === null, on: { change: send } })
      : null;

    function send() {
      const gone = Boolean(missing?.checked);
      box.classList.toggle("is-missing", gone);
      control.disable(gone);
      change(gone ? null : control.value());
    }

    function reset() {
      control.set(first);
      if (missing) missing.checked = initial === null;
      send();
    }

    control.disable(Boolean(missing?.checked));
    box.append(
      el("label", { class: "input-name", for: id }, name(input.name, 40)),
      missing ? el("label", { class: "missing" }, missing, " missing") : el("span"),
      ...control.elements);
    return { element: box, reset };
  }

  function fallback(input) {
    return isNumber(input) ? 0.5 * ((input.min ?? 0) + (input.max ?? 1)) : 0;
  }

  // A duration is a number of days, a date the number of days since 1970-01-01.
  function isNumber({ kind }) {
    return kind === "number" || kind === "date" || kind === "duration";
  }

  // Days, to the minute.
  function minutes(days) {
    return Math.round(days * 1440) / 1440;
  }

  // Days as a field of dates and times has them, and back; NaN for text that is no date.
  function dateText(days) {
    return new Date(Math.round(days * 1440) * 60000).toISOString().slice(0, 16);
  }

  function dateValue(text) {
    return Date.parse(`${text}Z`) / 86400000;
  }

  function limits(input, middle) {
    return [input.min ?? middle - 1, input.max ?? middle + 1];
  }

  // A number with no more digits than a tenth of a step of the slider: the field shows all of them.
  function tidy(input, x) {
    if (input.values) return x;
    const [low, high] = limits(input, x);
    const decimals = 1 - Math.floor(Math.log10(niceStep(low, high)));
    return decimals > 15 ? Number(x.toPrecision(8)) : Number(x.toFixed(Math.max(0, decimals)));
  }

  // A step of 1, 2 or 5 times a power of ten that divides the range into about 200 parts.
  function niceStep(low, high) {
    const rough = (high - low) / STEPS || 1;
    const power = 10 ** Math.floor(Math.log10(rough));
    return power * ([1, 2, 5].find((factor) => factor * power >= rough) || 10);
  }

  // The positions of a slider as values: all values of a column that has few, else even steps.
  function scaleOf(input, first) {
    const { values } = input;
    if (values) {
      const nearest = (x) => {
        const distances = values.map((one) => Math.abs(one - x));
        return distances.indexOf(Math.min(...distances));
      };
      return { last: values.length - 1, at: (k) => values[k], position: nearest };
    }
    const [low, high] = limits(input, first);
    const step = niceStep(low, high);
    return {
      last: Math.max(1, Math.ceil((high - low) / step - 1e-9)),
      at: (k) => tidy(input, Math.min(high, low + k * step)),
      position: (x) => Math.round((x - low) / step),
    };
  }

  function numberControl(input, id, first, send) {
    const scale = scaleOf(input, first);
    const field = el("input", { type: "number", id, step: "any", inputmode: "decimal" });
    const slider = el("input", {
      type: "range", min: 0, max: scale.last, step: 1, "aria-label": `${input.name}, slider`,
    });
    let current;

    function set(x) {
      current = x;
      field.value = String(x);
      field.setAttribute("aria-invalid", "false");
      slide();
    }

    function slide() {
      slider.value = String(scale.position(current));
      slider.setAttribute("aria-valuetext", String(current));
    }

    field.addEventListener("input", () => {
      const typed = field.value.trim() === "" ? NaN : Number(field.value);
      field.setAttribute("aria-invalid", String(!Number.isFinite(typed)));
      if (!Number.isFinite(typed)) return;
      current = typed;
      slide();
      send();
    });
    slider.addEventListener("input", () => {
      set(scale.at(Number(slider.value)));
      send();
    });
    set(first);
    return {
      elements: [slider, field],
      value: () => current,
      set,
      disable: (off) => {
        field.disabled = off;
        slider.disabled = off;
      },
    };
  }

  function dateControl(input, id, first, send) {
    const [low, high] = limits(input, first);
    const step = Math.max(1, Math.round((high - low) / STEPS));
    const field = el("input", { type: "datetime-local", id });
    const slider = el("input", {
      type: "range", min: 0, max: Math.max(1, Math.ceil((high - low) / step)), step: 1,
      "aria-label": `${input.name}, slider`,
    });
    let current;

    function slide() {
      slider.value = String(Math.round((current - low) / step));
      slider.setAttribute("aria-valuetext", dateText(current));
    }

    function set(days) {
      current = days;
      field.value = dateText(days);
      field.setAttribute("aria-invalid", "false");
      slide();
    }

    field.addEventListener("input", () => {
      const typed = dateValue(field.value);
      field.setAttribute("aria-invalid", String(!Number.isFinite(typed)));
      if (!Number.isFinite(typed)) return;
      current = typed;
      slide();
      send();
    });
    slider.addEventListener("input", () => {
      // Whole days: the time of day stays as it is.
      set(minutes(Math.floor(low) + Number(slider.value) * step + (current - Math.floor(current))));
      send();
    });
    set(first);
    return {
      elements: [slider, field],
      value: () => current,
      set,
      disable: (off) => {
        field.disabled = off;
        slider.disabled = off;
      },
    };
  }

  function listControl(input, id, first, send) {
    const labels = input.kind === "boolean" ? ["False", "True"] : input.labels;
    const options = labels.map((label, i) =>
      el("option", { value: i }, HK.format.shorten(label, 60)));
    if (input.kind === "category") options.push(el("option", { value: -1 }, "(another value)"));
    const control = el("select", { id, on: { change: send } }, options);
    control.value = String(first);
    return {
      elements: [control],
      value: () => Number(control.value),
      set: (position) => {
        control.value = String(position);
      },
      disable: (off) => {
        control.disabled = off;
      },
    };
  }

  return { create, value };
})();
