#!/usr/bin/env bash
# make train-demo: the bundled model learns the voice of a book with LoRA in a few minutes; the losses are drawn.
#     tools/train_demo.sh DIRECTORY [BOOK]
# BOOK is a text file; without one the first title of a corpus beside the checkout, where there is one.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1 book=${2:-}
if [[ -z $book ]]; then
  corpus=../shared/corpus/valid.txt.xz
  if [[ ! -f $corpus ]]; then
    echo "train-demo: no text to learn: give one, make train-demo BOOK=my-book.txt" >&2
    exit 2
  fi
  mkdir -p "$(dirname "$out")"
  book=$(dirname "$out")/train-demo-book.txt
  xz -dc "$corpus" | awk '/^<\|endoftext\|>$/ { done = 1 } !done { print }' > "$book"
fi
resume=()
[[ -d $out ]] && resume=(--resume)
build/release/paceline train --data "$book" -o "$out" "${resume[@]}" --max-seq-length 512 --batch-size 4 --iters 100 \
  --learning-rate 5e-3 --lr-schedule cosine --warmup-steps 5 --lora-rank 16 --lora-alpha 32 \
  --steps-per-report 10 --steps-per-eval 25 --save-every 50
python3 tools/plot.py "$out/metrics.jsonl" > "$out/losses.svg"
echo "The losses are drawn in $out/losses.svg. To serve it beside the base model:"
echo "    build/release/paceline serve --lora book=$out"
