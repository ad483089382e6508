"""`angle-train encode`: a model and texts in, embeddings out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from angle_data.console import configure_logging
from angle_train.command_options import AsJson, Device, Quiet, Verbose


def encode_texts(
    model: Annotated[str, typer.Option(help="Model to embed with: directory or hub id.")],
    texts: Annotated[
        Path,
        typer.Option(
            help="Texts: .jsonl[.gz], .csv[.gz], .parquet, .txt (one a line), or - (either, from stdin)."
        ),
    ],
    out: Annotated[
        Path, typer.Option(help=".npy (one array, rows as in --texts) or .parquet (id, embedding).")
    ],
    text_field: Annotated[str, typer.Option(help="Field that holds the text.")] = "text",
    id_field: Annotated[
        str | None, typer.Option(help="Field that holds the id.", show_default="id, if there is one")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Texts per forward pass.")] = 32,
    normalize: Annotated[
        bool, typer.Option("--normalize", help="Scale every embedding to length 1.")
    ] = False,
    prompt: Annotated[
        str | None, typer.Option(help="Text before every text.", show_default="model's")
    ] = None,
    max_seq_length: Annotated[
        int | None, typer.Option(help="Tokens per text.", show_default="model's")
    ] = None,
    device: Device = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: AsJson = False,
) -> None:
    """Embed the texts of a file, one embedding a row, in the order of the rows.

    Example: angle-train encode --model model --texts texts.jsonl --out texts.npy --normalize
    """
    configure_logging(quiet=quiet, verbose=verbose)
    from angle_train.model.load import check_training_extra

    check_training_extra("angle-train encode")
    from angle_train.encode import EncodeConfig, encode

    result = encode(
        EncodeConfig(
            model, texts, out, text_field, id_field, batch_size, normalize, prompt, max_seq_length, device
        )
    )
    if as_json:
        summary = {
            "out": str(result.out),
            "texts": result.texts,
            "blank": result.blank,
            "width": result.width,
        }
        typer.echo(json.dumps(summary, ensure_ascii=False))
    else:
        typer.echo(f"{result.texts} texts, embeddings of width {result.width}: {result.out}")
