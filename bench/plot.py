#!/usr/bin/env python3
"""Draw lines from a CSV file as SVG.

usage: plot.py --title=T --x=LABEL --y=LABEL [--log-x] FILE.csv >FILE.svg
Each row: series,x,y[,low,high]. The first row is a header. Nothing but the standard library.
"""
import argparse
import csv
import html
import math

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 150, 40, 50
COLOURS = ["#1f6fb2", "#c44e2b", "#3a8a3a", "#7d4aa0", "#555555"]


def read(path):
    series = {}
    with open(path, newline="") as f:
        for row in list(csv.reader(f))[1:]:
            values = [float(v) for v in row[1:]]
            low, high = values[2:4] if len(values) >= 4 else (values[1], values[1])
            series.setdefault(row[0], []).append((values[0], values[1], low, high))
    return series


def nice_step(top):
    step = 10 ** math.floor(math.log10(top))
    for factor in (0.1, 0.2, 0.5, 1, 2):
        if top / (step * factor) <= 8:
            return step * factor
    return step * 5


class Plot:
    def __init__(self, series, log_x):
        points = [p for s in series.values() for p in s]
        self.series, self.log_x = series, log_x
        self.xs = sorted({p[0] for p in points})
        self.y_step = nice_step(max(p[3] for p in points))
        self.y_top = math.ceil(max(p[3] for p in points) / self.y_step) * self.y_step

    def x(self, value):
        scale = math.log if self.log_x else float
        low, high = scale(self.xs[0]), scale(self.xs[-1])
        return LEFT + (scale(value) - low) / (high - low or 1) * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        return HEIGHT - BOTTOM - value / self.y_top * (HEIGHT - TOP - BOTTOM)

    def axes(self, args):
        right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
        yield f'<text x="{LEFT}" y="20" font-weight="bold">{html.escape(args.title)}</text>'
        yield f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{html.escape(args.x)}</text>'
        yield (f'<text transform="translate(16 {(TOP + bottom) / 2}) rotate(-90)" '
               f'text-anchor="middle">{html.escape(args.y)}</text>')
        for i in range(round(self.y_top / self.y_step) + 1):
            at = self.y(i * self.y_step)
            yield f'<line x1="{LEFT}" x2="{right}" y1="{at:.1f}" y2="{at:.1f}" stroke="#ddd"/>'
            yield f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{i * self.y_step:g}</text>'
        for value in self.xs:
            yield f'<text x="{self.x(value):.1f}" y="{bottom + 18}" text-anchor="middle">{value:g}</text>'

    def lines(self):
        for i, (name, points) in enumerate(self.series.items()):
            colour = COLOURS[i % len(COLOURS)]
            path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y, _, _ in points)
            yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
            for x, y, low, high in points:
                yield (f'<line x1="{self.x(x):.1f}" x2="{self.x(x):.1f}" y1="{self.y(low):.1f}" '
                       f'y2="{self.y(high):.1f}" stroke="{colour}"/>')
                yield f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="3" fill="{colour}"/>'
            yield f'<text x="{WIDTH - RIGHT + 10}" y="{TOP + 18 * (i + 1)}" fill="{colour}">{html.escape(name)}</text>'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--title", required=True)
    parser.add_argument("--x", required=True)
    parser.add_argument("--y", required=True)
    parser.add_argument("--log-x", action="store_true")
    parser.add_argument("file")
    args = parser.parse_args()
    plot = Plot(read(args.file), args.log_x)
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
          'font-family="sans-serif" font-size="12">')
    print('<rect width="100%" height="100%" fill="white"/>')
    for part in [*plot.axes(args), *plot.lines()]:
        print(part)
    print("</svg>")


if __name__ == "__main__":
    main()
