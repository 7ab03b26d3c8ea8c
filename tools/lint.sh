#!/usr/bin/env bash
# Runs clang-tidy over the sources changed since a commit (default HEAD), or over all of them.
# Usage: lint.sh [all | commit]
set -euo pipefail
cd "$(dirname "$0")/.."
since=${1:-HEAD}

cmake --preset lint >/dev/null
listed() { grep -o '"file": "[^"]*"' build/lint/compile_commands.json | sed 's/.*: "//; s/"$//' | sort -u; }
if [ "$since" = all ]; then
  mapfile -t files < <(listed)
else
  changed=$( (git diff --name-only "$since" -- '*.cc' '*.h' && git ls-files --others --exclude-standard -- '*.cc' '*.h') |
    sed "s|^|$PWD/|; s|\.h$|.cc|" | sort -u)
  mapfile -t files < <(comm -12 <(listed) <(printf '%s\n' "$changed"))
fi
if [ ${#files[@]} -eq 0 ]; then
  echo "lint: no source changed since $since (SINCE=all checks everything)"
  exit 0
fi
tidy=$(command -v clang-tidy-14 || command -v clang-tidy)
echo "lint: ${#files[@]} files"
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" "$tidy" -p build/lint --quiet --warnings-as-errors='*' \
  2> >(grep -v 'warnings generated' >&2)
