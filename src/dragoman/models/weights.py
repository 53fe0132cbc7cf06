"""Take a model's weights as a dictionary of tensors, each shared one once, and as a file."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from dragoman.errors import ModelError
from dragoman.models.weight_files import check_shapes


def get_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return every parameter by its first name; the tensors are the model's own."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def set_weights(model: nn.Module, weights: dict[str, Tensor], *, where: str) -> None:
    """Copy weights into a model of the same shape."""
    _check(model, weights, where)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(weights[name])


def adopt_weights(model: nn.Module, weights: dict[str, Tensor], *, where: str) -> None:
    """Let a model made on the meta device take the tensors themselves, without a copy."""
    _check(model, weights, where)
    new = {
        id(parameter): nn.Parameter(weights[name].float())
        for name, parameter in model.named_parameters()
    }
    everything = model.named_parameters(remove_duplicate=False)  # both names of a shared one
    model.load_state_dict({name: new[id(p)] for name, p in everything}, assign=True, strict=False)


def _check(model: nn.Module, weights: dict[str, Tensor], where: str) -> None:
    wanted = {name: tuple(parameter.shape) for name, parameter in model.named_parameters()}
    check_shapes({n: tuple(t.shape) for n, t in weights.items()}, wanted, where=where)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file."""
    try:
        tensors: dict[str, Tensor] = load_file(path)
    except FileNotFoundError:
        raise ModelError(f"{path}: no such file; the directory is incomplete") from None
    except (SafetensorError, OSError, json.JSONDecodeError) as error:
        raise ModelError(f"{path}: truncated or not a safetensors file ({error})") from None
    return tensors


def write_tensors(
    tensors: dict[str, Tensor], path: Path, metadata: dict[str, str] | None = None
) -> None:
    """Write a safetensors file; the caller makes it atomic."""
    path.touch()
    mode = path.stat().st_mode
    plain = {name: tensor.detach().contiguous().cpu() for name, tensor in tensors.items()}
    try:
        save_file(plain, path, metadata)
    except SafetensorError as error:
        # A full disk is an OSError to everybody else.
        if found := re.search(r"os error (\d+)", str(error)):
            raise OSError(int(found[1]), os.strerror(int(found[1])), str(path)) from None
        raise
    path.chmod(mode)  # safetensors lets nobody but the owner read
