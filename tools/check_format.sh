#!/usr/bin/env bash
# Checks (or with --fix corrects) the layout of every C++ source against .clang-format.
# Usage: check_format.sh [--fix] [file...]
set -euo pipefail
cd "$(dirname "$0")/.."

mode=(--dry-run --Werror)
if [ "${1:-}" = --fix ]; then
  mode=(-i)
  shift
fi
# The version decides the layout, so it is pinned to the one Debian 12 has.
formatter=$(command -v clang-format-14 || command -v clang-format) || {
  echo "clang-format not found: tools/install_deps.sh lint" >&2
  exit 1
}

if [ $# -gt 0 ]; then
  files=("$@")
else
  mapfile -t files < <(find src include tests fuzz bench traffic -name build -prune -o \
    \( -name '*.h' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \) -type f -print 2>/dev/null | sort)
fi
[ ${#files[@]} -gt 0 ] || exit 0
printf '%s\0' "${files[@]}" | xargs -0 -n 8 -P "$(nproc)" "$formatter" --style=file "${mode[@]}" || {
  echo "run: make format" >&2
  exit 1
}
