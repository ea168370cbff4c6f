#!/usr/bin/env python3
"""tools/convert_checkpoint.py: a golden checkpoint, pickled and converted, is what it was.

    convert_checkpoint_test.py SCRIPT GOLDEN_MODEL_DIR

Exits 4 (skipped) where torch is missing, after checking that the script says so.
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile


def tensors_of(path: pathlib.Path) -> dict:
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    body = memoryview(data)[8 + size :]
    return {
        name: (entry["dtype"], entry["shape"], bytes(body[slice(*entry["data_offsets"])]))
        for name, entry in header.items()
    }


def main() -> int:
    script, golden = sys.argv[1], pathlib.Path(sys.argv[2])

    def convert(*arguments) -> subprocess.CompletedProcess:
        command = [sys.executable, script, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        try:
            import torch
        except ImportError:
            run = convert(folder, folder / "out")
            assert run.returncode != 0 and "needs torch" in run.stderr, run.stderr
            print("skipped: torch is not installed; the script says so")
            return 4

        original = tensors_of(golden / "model.safetensors")
        state = {
            key: torch.frombuffer(bytearray(raw), dtype=torch.float32).reshape(shape)
            for key, (_, shape, raw) in original.items()
        }
        # As the original code saves a tied head: the embedding, once more.
        state["lm_head.weight"] = state["backbone.embedding.weight"]
        torch.save(state, folder / "pytorch_model.bin")
        (folder / "config.json").write_bytes((golden / "config.json").read_bytes())

        run = convert(folder, folder / "out")
        assert run.returncode == 0, run.stderr
        assert tensors_of(folder / "out" / "model.safetensors") == original
        assert (folder / "out" / "config.json").read_text() == (folder / "config.json").read_text()

        run = convert(folder, folder / "halves", "--dtype", "bf16")
        assert run.returncode == 0, run.stderr
        halves = tensors_of(folder / "halves" / "model.safetensors")
        for key, (type_name, shape, raw) in halves.items():
            rounded = state[key].to(torch.bfloat16).view(torch.int16).numpy().tobytes()
            assert (type_name, shape, raw) == ("BF16", original[key][1], rounded), key

        torch.save([1], folder / "pytorch_model.bin")
        run = convert(folder, folder / "none")
        assert run.returncode != 0 and "is not a state dict" in run.stderr, run.stderr
        (folder / "pytorch_model.bin").unlink()
        run = convert(folder, folder / "none")
        assert run.returncode != 0 and "expected pytorch_model.bin" in run.stderr, run.stderr
    return 0


if __name__ == "__main__":
    sys.exit(main())
