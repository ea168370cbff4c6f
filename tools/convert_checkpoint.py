#!/usr/bin/env python3
"""Converts a pickled state-spaces Mamba-2 checkpoint to safetensors, which mambatile reads.

    tools/convert_checkpoint.py MODEL_DIR OUT_DIR [--dtype keep|f32|bf16|f16]

MODEL_DIR holds config.json and pytorch_model.bin (or any *.bin, *.pt of one state dict) as
published under state-spaces/mamba2-*. OUT_DIR gets config.json as it is and model.safetensors with
the tensors under their own names; a head that is the embedding itself is left out, as tied heads
are. Needs torch, to unpickle; only weights are unpickled, never code. `safetensors` is not needed.
"""

import argparse
import json
import pathlib
import shutil
import struct
import sys


def state_dict_file(folder: pathlib.Path) -> pathlib.Path:
    named = folder / "pytorch_model.bin"
    if named.exists():
        return named
    found = sorted([*folder.glob("*.bin"), *folder.glob("*.pt"), *folder.glob("*.pth")])
    if len(found) != 1:
        sys.exit(f"{folder}: expected pytorch_model.bin or one *.bin, *.pt or *.pth; found {len(found)}")
    return found[0]


def write_safetensors(path: pathlib.Path, tensors: dict) -> None:
    """`tensors`: name to (type name, shape, function that gives the bytes, bytes of an element)."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    order = sorted(tensors, key=lambda name: (-tensors[name][3], name))
    for name in order:
        type_name, shape, _, element = tensors[name]
        size = element
        for extent in shape:
            size *= extent
        header[name] = {"dtype": type_name, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for name in order:
            file.write(tensors[name][2]())
    temporary.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path, help="directory with config.json and the pickle")
    parser.add_argument("out", type=pathlib.Path, help="directory to write")
    parser.add_argument("--dtype", choices=("keep", "f32", "bf16", "f16"), default="keep")
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit(
            "convert_checkpoint.py needs torch to read a pickled checkpoint and cannot import it; "
            "`pip install torch`, or take a copy of the model that is stored as safetensors"
        )

    config = arguments.model / "config.json"
    if not config.exists():
        sys.exit(f"{config}: does not exist")
    source = state_dict_file(arguments.model)
    state = torch.load(source, map_location="cpu", weights_only=True)
    state = state.get("state_dict", state) if isinstance(state, dict) else None
    if not state or not all(isinstance(value, torch.Tensor) for value in state.values()):
        sys.exit(f"{source}: is not a state dict, a mapping of names to tensors")

    head, embedding = state.get("lm_head.weight"), state.get("backbone.embedding.weight")
    if head is not None and embedding is not None and head.data_ptr() == embedding.data_ptr():
        del state["lm_head.weight"]

    wanted = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}.get(arguments.dtype)
    names = {torch.float32: ("F32", 4), torch.bfloat16: ("BF16", 2), torch.float16: ("F16", 2)}
    tensors = {}
    for name, value in state.items():
        if value.dtype not in names:
            sys.exit(f"{source}: {name} has the type {value.dtype}; floating-point weights are expected")
        type_name, element = names[wanted or value.dtype]

        def bytes_of(value=value):
            data = value.detach().to(wanted or value.dtype).contiguous()
            return data.view(torch.uint8).numpy().tobytes() if data.numel() else b""

        tensors[name] = (type_name, list(value.shape), bytes_of, element)

    arguments.out.mkdir(parents=True, exist_ok=True)
    write_safetensors(arguments.out / "model.safetensors", tensors)
    if config.resolve() != (arguments.out / "config.json").resolve():
        shutil.copyfile(config, arguments.out / "config.json")
    print(f"{arguments.out}: {len(tensors)} tensors")


if __name__ == "__main__":
    main()
