#!/usr/bin/env python3
"""Times a plain chunked scan written with PyTorch's CPU operators, for scale beside the side-by-side.

    python3 tests/bench/peers/bench_torch.py [--threads 1,2] [--seqlen 512]

Prints one JSON line per shape and number of threads, with the best of several chunk sizes. Optional:
says so and ends well where PyTorch is not installed.
"""

import argparse
import json
import sys
import time

try:
    import torch
except ImportError:
    print("PyTorch is not installed: left out", file=sys.stderr)
    sys.exit(0)

SHAPES = {  # nheads, headdim, ngroups, dstate
    "mamba2-130m": (24, 64, 1, 128),
    "mamba2-2.7b": (80, 64, 1, 128),
    "nemotron-h-8b": (128, 64, 8, 128),
}


def chunked_scan(x, dt, A, B, C, state, chunk):
    """x (l, h, p), dt (l, h) after softplus, A (h), B and C (l, g, n), state (h, p, n)."""
    heads, groups = x.shape[1], B.shape[1]
    out = torch.empty_like(x)
    causal = torch.ones(chunk, chunk, dtype=torch.bool).tril()
    for begin in range(0, x.shape[0], chunk):
        rows = slice(begin, min(begin + chunk, x.shape[0]))
        size = rows.stop - rows.start
        xs = (x[rows] * dt[rows, :, None]).transpose(0, 1)  # (h, q, p)
        decay = torch.cumsum(dt[rows] * A, dim=0).transpose(0, 1)  # (h, q)
        Bs = B[rows].transpose(0, 1).repeat_interleave(heads // groups, 0)  # (h, q, n)
        Cs = C[rows].transpose(0, 1)
        scores = (Cs @ B[rows].permute(1, 2, 0)).repeat_interleave(heads // groups, 0)
        Cs = Cs.repeat_interleave(heads // groups, 0)
        mask = causal[:size, :size]
        gaps = (decay[:, :, None] - decay[:, None, :]).masked_fill(~mask, -torch.inf)
        inside = (scores * gaps.exp()) @ xs
        before = (Cs * decay.exp()[:, :, None]) @ state.transpose(1, 2)
        out[rows] = (inside + before).transpose(0, 1)
        weights = (decay[:, -1:] - decay).exp()
        state = state * decay[:, -1, None, None].exp() + (xs * weights[:, :, None]).transpose(1, 2) @ Bs
    return out, state


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--seqlen", type=int, default=512)
    arguments = parser.parse_args()
    torch.manual_seed(1)
    for name, (h, p, g, n) in SHAPES.items():
        length = arguments.seqlen
        x, state = torch.randn(length, h, p) * 0.5, torch.randn(h, p, n)
        B, C = torch.randn(length, g, n) * 0.5, torch.randn(length, g, n) * 0.5
        dt, A = torch.exp(torch.empty(length, h).uniform_(-6.9, -2.3)), -torch.empty(h).uniform_(1, 16)
        for threads in map(int, arguments.threads.split(",")):
            torch.set_num_threads(threads)
            best = {}
            with torch.inference_mode():
                for chunk in (32, 64, 128, 256):
                    samples = []
                    for _ in range(6):
                        start = time.perf_counter()
                        chunked_scan(x, dt, A, B, C, state, chunk)
                        samples.append((time.perf_counter() - start) * 1e3)
                    best[chunk] = min(samples[1:])
            chunk = min(best, key=best.get)
            print(json.dumps({
                "kind": "peer", "peer": f"torch {torch.__version__}", "shape": name,
                "seqlen": length, "threads": threads, "chunk": chunk, "ms": round(best[chunk], 3),
            }), flush=True)


if __name__ == "__main__":
    main()
