#!/usr/bin/env bash
# Runs every libFuzzer target of build/fuzz for a while, starting from its committed corpus.
# Usage: fuzz.sh [seconds for each target] [target...]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift || true

targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(find build/fuzz/fuzz -maxdepth 1 -name 'fuzz_*' -type f -perm -u+x |
  sed 's|.*/fuzz_||' | sort)
[ ${#targets[@]} -gt 0 ] || {
  echo "fuzz: no target in build/fuzz" >&2
  exit 1
}
for target in "${targets[@]}"; do
  found=build/fuzz/found/$target
  mkdir -p "$found"
  echo "fuzz: $target, $seconds s"
  dictionary=()
  [ ! -f "fuzz/$target.dict" ] || dictionary=("-dict=fuzz/$target.dict")
  log=build/fuzz/$target.log
  # New inputs go to the first directory; an input that fails is written beside the log and ends the run.
  if ! "build/fuzz/fuzz/fuzz_$target" "-max_total_time=$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    "-artifact_prefix=build/fuzz/crash-$target-" "${dictionary[@]}" "$found" "fuzz/corpus/$target" >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    exit 1
  fi
  grep -E 'stat::(number_of_executed|new_units)' "$log"
done
