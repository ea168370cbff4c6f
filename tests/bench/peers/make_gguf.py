#!/usr/bin/env python3
"""Writes a Mamba-2 checkpoint as a GGUF file, so that llama.cpp can run the same weights.

    .deps/peers/venv/bin/pip install gguf
    .deps/peers/venv/bin/python tests/bench/peers/make_gguf.py CHECKPOINT_DIR OUT.gguf [--type f32|bf16]

CHECKPOINT_DIR holds config.json and model.safetensors of the model type mamba2 in Hugging Face's
names (`mambatile make-checkpoint` writes one). The file has no tokenizer: token ids go in and out.
--type is what the matrices are stored in; everything else is f32, as llama.cpp wants it.
"""

import argparse
import json
import pathlib
import struct

import gguf
import numpy as np


def bf16_bits(values: np.ndarray) -> np.ndarray:
    """Rounds to nearest, ties to even."""
    words = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32).astype(np.uint64)
    return ((words + 0x7FFF + ((words >> 16) & 1)) >> 16).astype(np.uint16)


def as_f32(raw: bytes, type_name: str, shape: list[int]) -> np.ndarray:
    if type_name == "F32":
        values = np.frombuffer(raw, dtype=np.float32)
    elif type_name == "F16":
        values = np.frombuffer(raw, dtype=np.float16).astype(np.float32)
    elif type_name == "BF16":
        words = np.frombuffer(raw, dtype=np.uint16).astype(np.uint32) << 16
        values = words.view(np.float32)
    else:
        raise SystemExit(f"a tensor has the type {type_name}; F32, F16 and BF16 can be read")
    return values.reshape(shape)


def read_safetensors(path: pathlib.Path) -> dict[str, np.ndarray]:
    data = path.read_bytes()
    (header_size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + header_size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + header_size + offset for offset in entry["data_offsets"])
        tensors[name] = as_f32(data[begin:end], entry["dtype"], entry["shape"])
    return tensors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--type", choices=("f32", "bf16"), default="f32")
    arguments = parser.parse_args()

    config = json.loads((arguments.checkpoint / "config.json").read_text())
    tensors = read_safetensors(arguments.checkpoint / "model.safetensors")
    layers = config["num_hidden_layers"]
    heads, headdim = config["num_heads"], config["head_dim"]
    groups, inner = config["n_groups"], heads * headdim

    writer = gguf.GGUFWriter(str(arguments.out), "mamba2")
    writer.add_context_length(2**20)
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(0)
    writer.add_head_count(0)
    writer.add_block_count(layers)
    writer.add_ssm_conv_kernel(config["conv_kernel"])
    writer.add_ssm_inner_size(inner)
    writer.add_ssm_state_size(config["state_size"])
    writer.add_ssm_time_step_rank(heads)
    writer.add_ssm_group_count(groups)
    writer.add_layer_norm_rms_eps(config["layer_norm_epsilon"])
    writer.add_vocab_size(tensors["backbone.embeddings.weight"].shape[0])
    writer.add_tokenizer_model("none")
    writer.add_file_type(
        gguf.LlamaFileType.MOSTLY_BF16 if arguments.type == "bf16" else gguf.LlamaFileType.ALL_F32
    )

    def matrix(name: str, values: np.ndarray) -> None:
        if arguments.type == "bf16":
            writer.add_tensor(
                name,
                bf16_bits(values).view(np.uint8),
                raw_dtype=gguf.GGMLQuantizationType.BF16,
            )
        else:
            writer.add_tensor(name, np.ascontiguousarray(values))

    def vector(name: str, values: np.ndarray) -> None:
        writer.add_tensor(name, np.ascontiguousarray(values, dtype=np.float32))

    matrix("token_embd.weight", tensors["backbone.embeddings.weight"])
    vector("output_norm.weight", tensors["backbone.norm_f.weight"])
    if not config.get("tie_word_embeddings", True):
        matrix("output.weight", tensors["lm_head.weight"])
    for layer in range(layers):
        source = f"backbone.layers.{layer}."
        mixer = source + "mixer."
        target = f"blk.{layer}."
        vector(target + "attn_norm.weight", tensors[source + "norm.weight"])
        matrix(target + "ssm_in.weight", tensors[mixer + "in_proj.weight"])
        conv = tensors[mixer + "conv1d.weight"]
        vector(target + "ssm_conv1d.weight", conv.reshape(conv.shape[0], conv.shape[-1]))
        vector(target + "ssm_conv1d.bias", tensors[mixer + "conv1d.bias"])
        vector(target + "ssm_dt.bias", tensors[mixer + "dt_bias"])
        vector(target + "ssm_a", -np.exp(tensors[mixer + "A_log"]).reshape(heads, 1))
        vector(target + "ssm_d", tensors[mixer + "D"].reshape(heads, 1))
        vector(
            target + "ssm_norm.weight", tensors[mixer + "norm.weight"].reshape(groups, inner // groups)
        )
        matrix(target + "ssm_out.weight", tensors[mixer + "out_proj.weight"])

    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
