"""The `angle-data` program: every command reads its options, calls one function and prints the result."""

from __future__ import annotations

from angle_data.calling.commands import Program
from angle_data.calling.program import make_app, run_app
from angle_data.ensembling.command import ensemble
from angle_data.gis.command import explain, gis, rehydrate
from angle_data.labelling.command import llm_label, llm_score, mine, probe
from angle_data.look.command import grade, show
from angle_data.project.command import pilot, run, start, status

app = make_app("angle-data", "Texts in, labelled sentence pairs out.")


app.command("start")(start)
app.command("pilot")(pilot)
app.command("run")(run)
app.command("status")(status)
app.command("llm-label")(llm_label)
app.command("llm-score")(llm_score)
app.command("probe")(probe)
app.command("mine")(mine)
app.command("ensemble")(ensemble)
gis_app = Program(callback=gis, invoke_without_command=True)
gis_app.command("explain")(explain)
gis_app.command("rehydrate")(rehydrate)
app.add_typer(gis_app, name="gis")
app.command("show")(show)
app.command("grade")(grade)


def main() -> None:
    """Run the program."""
    run_app(app, "angle-data")
