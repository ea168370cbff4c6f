#!/usr/bin/env python3
"""Draws the side-by-side's JSON lines as a roofline plot.

    tests/bench/plot.py RESULTS.jsonl OUT.svg

One panel per number of threads: f32 operations a second against operations per byte that must move,
under the roofs that the same run measured. Only the standard library is needed.
"""

import json
import math
import sys

WIDTH, HEIGHT, GAP = 560, 420, 70
COLOURS = {"ours": "#0b6e4f", "ggml": "#c1440e"}


class Panel:
    """Axes with logarithmic scales, drawn into a list of SVG elements."""

    def __init__(self, left, x_range, y_range):
        self.left, self.x_range, self.y_range = left, x_range, y_range
        self.parts = []

    def x(self, value):
        low, high = map(math.log10, self.x_range)
        return self.left + (math.log10(value) - low) / (high - low) * WIDTH

    def y(self, value):
        low, high = map(math.log10, self.y_range)
        return 60 + HEIGHT - (math.log10(value) - low) / (high - low) * HEIGHT

    def text(self, x, y, words, anchor="middle", size=11, colour="#333", extra=""):
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
            f'fill="{colour}" {extra}>{words}</text>'
        )

    def line(self, x1, y1, x2, y2, colour="#333", extra=""):
        self.parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            f'stroke="{colour}" {extra}/>'
        )

    def axes(self, title):
        bottom, right = 60 + HEIGHT, self.left + WIDTH
        for value in ticks(self.x_range):
            self.line(self.x(value), 60, self.x(value), bottom, "#e4e4e4")
            self.text(self.x(value), bottom + 16, f"{value:g}")
        for value in ticks(self.y_range):
            self.line(self.left, self.y(value), right, self.y(value), "#e4e4e4")
            self.text(self.left - 6, self.y(value) + 4, f"{value:g}", "end")
        self.line(self.left, bottom, right, bottom)
        self.line(self.left, 60, self.left, bottom)
        self.text(self.left + WIDTH / 2, 40, title, size=14)
        self.text(self.left + WIDTH / 2, bottom + 36, "f32 operations per byte (4 N P a token and head)")

    def roof(self, peak, bandwidth):
        ridge = peak / bandwidth
        start = self.y_range[0] / bandwidth
        start = max(start, self.x_range[0])
        self.line(self.x(start), self.y(start * bandwidth), self.x(ridge), self.y(peak), "#222",
                  'stroke-width="1.5"')
        self.line(self.x(ridge), self.y(peak), self.left + WIDTH, self.y(peak), "#222",
                  'stroke-width="1.5"')
        self.text(self.left + WIDTH - 4, self.y(peak) - 6, f"FMA peak {peak:.0f} GF/s", "end")
        self.text(self.x(ridge) - 60, self.y(peak) + 24, f"in place {bandwidth:.0f} GB/s", "end")

    def point(self, intensity, rate, who, words):
        x, y = self.x(intensity), self.y(rate)
        shape = (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5"'
            if who == "ours"
            else f'<rect x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"'
        )
        tag = "circle" if who == "ours" else "rect"
        self.parts.append(
            f'{shape} fill="{COLOURS[who]}" fill-opacity="0.75"><title>{words}</title></{tag}>'
        )


def ticks(bounds):
    low, high = (math.floor(math.log10(bounds[0])), math.ceil(math.log10(bounds[1])))
    marks = [factor * 10.0**power for power in range(low, high + 1) for factor in (1, 2, 5)]
    return [mark for mark in marks if bounds[0] <= mark <= bounds[1]]


def escape(words):
    return words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def points(lines, threads):
    for line in lines:
        if line["kind"] != "cell" or line["threads"] != threads or "ms" not in line:
            continue
        if "flops" not in line or "bytes" not in line:
            continue
        name = f'{line["group"]}: {line["cell"]}'
        for who, key in (("ours", "ms"), ("ggml", "ggml_ms")):
            if key in line:
                rate = line["flops"] / line[key] * 1e-6
                yield line["flops"] / line["bytes"], rate, who, escape(
                    f"{who}, {name}: {line[key]:.4g} ms, {rate:.1f} GF/s"
                )


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    machine = next(line for line in lines if line["kind"] == "machine")
    counts = sorted({line["threads"] for line in lines if line["kind"] == "cell"})
    drawn = {count: list(points(lines, count)) for count in counts}
    everything = [point for group in drawn.values() for point in group]
    if not everything:
        raise SystemExit("no cell in the file has a rate to draw")
    peaks = [machine[f"fma_peak_gflops_{count}"] for count in counts]
    x_range = (min(p[0] for p in everything) / 2, max(p[0] for p in everything) * 3)
    y_range = (min(p[1] for p in everything) / 2, max(peaks) * 2)

    total = GAP + (WIDTH + GAP) * len(counts)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{total}" height="{HEIGHT + 150}" '
        'font-family="sans-serif">',
        f'<rect width="{total}" height="{HEIGHT + 150}" fill="white"/>',
    ]
    for index, count in enumerate(counts):
        panel = Panel(GAP + index * (WIDTH + GAP), x_range, y_range)
        panel.axes(f"{count} thread{'s' if count > 1 else ''}, GF/s")
        panel.roof(machine[f"fma_peak_gflops_{count}"], machine[f"in_place_gbytes_{count}"])
        for point in sorted(drawn[count], key=lambda point: point[2]):
            panel.point(*point)
        parts += panel.parts
    legend = Panel(GAP, x_range, y_range)
    bottom = HEIGHT + 120
    legend.parts.append(f'<circle cx="{GAP}" cy="{bottom}" r="4.5" fill="{COLOURS["ours"]}"/>')
    legend.text(GAP + 12, bottom + 4, "mambatile", "start")
    legend.parts.append(
        f'<rect x="{GAP + 96}" y="{bottom - 4}" width="8" height="8" fill="{COLOURS["ggml"]}"/>'
    )
    legend.text(GAP + 112, bottom + 4, "ggml", "start")
    words = f'{machine.get("machine", "")}; {machine.get("backend", "")}; {machine.get("commit", "")}'
    legend.text(GAP + 170, bottom + 4, escape(words), "start")
    parts += legend.parts + ["</svg>"]
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write("\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
