"""Line charts with logarithmic axes, as SVG: plain text that lies in the repository."""

import html
import math

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 84, 150, 52, 52
COLOURS = ["#0b6bcb", "#c2410c", "#15803d", "#7e22ce", "#525252"]
PREFIXES = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")]


def short(value, unit=""):
    """1e-6 with the unit s is 1 µs."""
    size, prefix = next(row for row in PREFIXES if value >= row[0] * 0.9999)
    return f"{value / size:.3g} {prefix}{unit}".strip()


class Axis:
    """From values to places: whole decades, from first to last."""

    def __init__(self, values, begin, end):
        self.low = math.floor(math.log10(min(values)) + 1e-9)
        self.high = max(math.ceil(math.log10(max(values)) - 1e-9), self.low + 1)
        self.begin, self.end = begin, end

    def place(self, value):
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return self.begin + part * (self.end - self.begin)

    def decades(self):
        return [10.0**power for power in range(self.low, self.high + 1)]


def text(x, y, words, anchor="middle", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{html.escape(words)}</text>'


def grid(x_axis, y_axis, x_unit, y_unit):
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for value in x_axis.decades():
        x = x_axis.place(value)
        yield f'<path class="grid" d="M{x:.1f} {TOP}V{bottom}"/>'
        yield text(x, bottom + 18, short(value, x_unit))
    for value in y_axis.decades():
        y = y_axis.place(value)
        yield f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>'
        yield text(LEFT - 8, y + 4, short(value, y_unit), "end")


def line(points, x_axis, y_axis, colour):
    places = [(x_axis.place(x), y_axis.place(y)) for x, y in points]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for x, y in places:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>'


def legend(names):
    for i, name in enumerate(names):
        y = TOP + 14 + 20 * i
        colour = COLOURS[i % len(COLOURS)]
        yield f'<path d="M{WIDTH - RIGHT + 12} {y}h18" stroke="{colour}" stroke-width="3"/>'
        yield text(WIDTH - RIGHT + 36, y + 4, name, "start")


def chart(title, below, x_label, y_label, series, x_unit="", y_unit=""):
    """series: {name: [(x, y), ...]} with positive numbers; below: a line under the title. Returns
    the SVG."""
    points = [point for row in series.values() for point in row]
    x_axis = Axis([x for x, _ in points], LEFT, WIDTH - RIGHT)
    y_axis = Axis([y for _, y in points], HEIGHT - BOTTOM, TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        ' font-family="sans-serif" font-size="12">',
        "<style>.grid{stroke:#ddd}text{fill:#222}</style>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        text(LEFT, 22, title, "start", ' font-size="15" font-weight="bold"'),
        text(LEFT, 40, below, "start"),
        text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, x_label),
        text(0, 0, y_label, more=f' transform="translate(18 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)"'),
        *grid(x_axis, y_axis, x_unit, y_unit),
        *legend(series),
    ]
    for i, row in enumerate(series.values()):
        parts += line(row, x_axis, y_axis, COLOURS[i % len(COLOURS)])
    return "\n".join([*parts, "</svg>", ""])
