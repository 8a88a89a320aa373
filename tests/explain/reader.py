"""Formulas evaluated as a reader would: from the text alone, with Python for the arithmetic."""

import re

import numpy as np

_ARGUMENT = re.compile(r"(z\((.*?)\)) = (.*?)(?:, (\S+) <= (.*) <= (\S+))?")
_CURVE = re.compile(r"([a-y]\d*\((.*?)\)): (?:about )?(.*); linear between, constant beyond")
_STEPS = re.compile(r"([fs]\((.*?)\)): (\S+ up to .* above)")
_CELLS = re.compile(r"(f\((.*?)\)):\n?(.*)", re.DOTALL)
_CELL = re.compile(r"('(?:[^'\\]|\\.)*'|any other|False|True|[\d.-]+): +([^\s,]+),?(?=\s|$)")
_SUM = re.compile(r"(f\((.*?)\))(?:, the sum of)?\n(.*)", re.DOTALL)
_SHARE = r" +(?:<?[\d.]+ %|share)"


def evaluate_text(text, X, names, labels=None):
    """Return the value of every output at the rows of X, by name.

    ``labels`` has for the columns of categories, by position, the label of each code. What is not
    told to be zero where a value is missing is NaN there.
    """
    return Reader(text, X, names, labels or {}).outputs()


class Reader:
    """The functions of a legend at some rows, and the sums and tables that use them."""

    def __init__(self, text, X, names, labels):
        self.head, _, rest = text.partition("\n\nwhere\n")
        self.X, self.names, self.labels = X, list(names), labels
        legend = re.split(r"\n\n(?! )", rest)[0]
        self.zero = "one of its variables is missing" in legend
        self.functions = {}
        entries = re.split(r"\n(?=  \S)", legend.replace("\n      ", " "))
        entries = [entry.strip(" ") for entry in entries]
        for entry in sorted(entries, key=lambda entry: entry.startswith("f(")):
            self._define(entry)

    def outputs(self):
        """f at the rows; several outputs by their labels."""
        if self.head.startswith("f = "):
            return {"f": self._sum()}
        return self._table()

    def column(self, name):
        return self.X[:, self.names.index(name)]

    def calculate(self, expression):
        """A sum of products; all functions in it are told."""
        ordered = sorted(self.functions, key=len, reverse=True)
        for i, what in enumerate(ordered):
            expression = expression.replace(what, f"v[{i}]")
        values = {"v": [self.functions[what] for what in ordered]}
        return eval(expression.replace("^", "**"), values) + np.zeros(len(self.X))

    def _sum(self):
        first, *lines = re.sub("\n      ", " ", self.head).split("\n")
        total = np.full(len(self.X), float(re.fullmatch(rf"f = (\S+)(?:{_SHARE})?", first)[1]))
        for line in lines:
            # The share stands at the right of the first line of an effect.
            effect = re.sub(_SHARE, "", line, count=1)
            total = total + self._effect(effect, self.calculate(effect.strip().lstrip("+ ")))
        return total

    def _table(self):
        _, _, body = self.head.partition("\n\n")
        out = {}
        for block in body.split("\n\n"):
            heads, *rows = block.split("\n")
            heads = [head for head in re.split(r" {3,}", heads.strip()) if head != "share"]
            found = [[] for _ in heads]
            group = ""
            for row in rows:
                left, *numbers = row.rsplit(None, len(heads))
                label = re.sub(rf"(?: {{3,}}{_SHARE})?$", "", left).rstrip()
                label = re.sub(r" {3,}<?[\d.]+ %$", "", label)
                group = group + label if row.startswith("  ") else label
                value = self._row(label.strip())
                for k, number in enumerate(numbers):
                    found[k].append((group, float(number) * value))
            for head, parts in zip(heads, found, strict=True):
                out[head] = sum(self._effect(group, value) for group, value in parts)
        return out

    def _row(self, label):
        """A product, or conditions and a product."""
        if re.search(r" [=>]|<=", label):
            conditions, _, product = label.partition(": ")
            value = self.calculate(product or "1")
            for condition in conditions.split(", "):
                value = value * self._condition(condition)
            return value
        return self.calculate(label)

    def _condition(self, condition):
        name = next(name for name in self.names if f" {name} " in f" {condition} ")
        left, right = f" {condition} ".split(f" {name} ")
        x = self.column(name)
        if right.startswith("= "):
            return self._cell(name, right[2:].strip())
        low = float(left.replace("<", "")) if left.strip() else -np.inf
        if right.startswith("> "):
            return x > float(right[2:])
        return (x > low) & (x <= float(right.removeprefix("<= ")))

    def _cell(self, name, label):
        """Where a variable is in a cell."""
        x = self.column(name)
        m = self.names.index(name)
        if label in ("False", "True"):
            return x == float(label == "True")
        for pattern, inside in (
            (r"up to (\S+)", lambda high: x <= high),
            (r"above (\S+)", lambda low: x > low),
            (r"(\S+) to (\S+)", lambda low, high: (x > low) & (x <= high)),
        ):
            found = re.fullmatch(pattern, label)
            if found:
                return inside(*map(float, found.groups()))
        if label == "any other":
            return np.zeros(len(x), dtype=bool)
        known = self.labels.get(m)
        if known is None:
            return x == float(label)
        return np.array([repr(known.get(code)) == label for code in x])

    def _effect(self, text, value):
        """Zero where one of the variables of an effect is missing, if this is told."""
        missing = np.zeros(len(self.X), dtype=bool)
        for name in self.names:
            # As an argument, or in a condition.
            if re.search(rf"[(,] ?{re.escape(name)}[),]|(^|, ){re.escape(name)} [=<>]", text):
                missing |= np.isnan(self.column(name))
        return np.where(missing & self.zero, 0.0, value)

    def _define(self, entry):
        """Keep the values of a function that an entry of the legend tells."""
        for pattern, read in (
            (_ARGUMENT, self._argument),
            (_CURVE, self._curve),
            (_STEPS, self._steps),
            (_CELLS, self._cells),
            (_SUM, self._parts),
        ):
            found = pattern.fullmatch(entry)
            if found:
                value = read(*found.groups()[1:])
                missing = np.any([np.isnan(self.column(n)) for n in self._named(found[2])], axis=0)
                self.functions[found[1]] = np.where(missing & self.zero, 0.0, value)
                return

    def _named(self, arguments):
        return [arguments] if arguments in self.names else arguments.split(", ")

    def _argument(self, name, meaning, low, _, high):
        x = self.column(name)
        if low is not None:
            x = np.clip(x, float(low), float(high))
        return eval(meaning.replace(name, "x"), {"x": x, "asinh": np.arcsinh})

    def _curve(self, name, text):
        pairs = [part.split(" at ") for part in text.split(", ")]
        heights, points = np.array(pairs, dtype=float).T
        return np.interp(self.column(name), points, heights)

    def _steps(self, name, text):
        *pieces, last = text.split(", ")
        values = [float(piece.split(" up to ")[0]) for piece in pieces]
        ends = [float(piece.split(" up to ")[1]) for piece in pieces]
        values.append(float(last.removesuffix(" above")))
        return np.array(values)[np.searchsorted(ends, self.column(name))]

    def _cells(self, name, text):
        out = np.zeros(len(self.X))
        found = _CELL.findall(text)
        assert _CELL.sub("", text).strip() == "", "all of it is read"
        for label, number in found:
            out += float(number) * self._cell(name, label)
        return out

    def _parts(self, arguments, text):
        parts = re.split(r"\n +and\n", text)
        return sum(self._part(part) for part in parts)

    def _part(self, part):
        if part.strip()[:2] in ("+ ", "- "):
            return self.calculate(part.strip().lstrip("+ "))
        out = np.zeros(len(self.X))
        for block in part.split("\n\n"):
            corner, *rows = [re.split(r" {3,}", line.strip()) for line in block.split("\n")]
            for label, *numbers in rows:
                for head, number in zip(corner[1:], numbers, strict=True):
                    out += float(number) * self._entry(corner[0], label, head)
        return out

    def _entry(self, corner, label, head):
        """The indicator of a cell of a table, times the product at the head of its column."""
        if " \\ " in corner:
            first, second = corner.split(" \\ ")
            return self._cell(first, label) * self._cell(second, head)
        value = self.calculate(head)
        if label == "any other":
            return 0.0 * value
        for name, cell in zip(self._named(corner), label.split(", "), strict=True):
            value = value * self._cell(name, cell)
        return value
