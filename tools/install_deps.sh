#!/usr/bin/env bash
# Installs the Debian packages of the named groups; quick and silent when nothing is missing.
# Usage: install_deps.sh [build] [install] [package] [test] [bench] [peers] [fuzz] [lint]      (default: build)
set -euo pipefail

packages_of() {
  case $1 in
    build) echo make g++ cmake ninja-build ccache git libfmt-dev libsimdjson-dev \
      libpcre2-dev libutf8proc-dev libedit-dev libboost1.81-dev libssl-dev libzstd-dev \
      libtomlplusplus-dev libyaml-dev ;;
    install) echo python3 ;;
    package) echo dpkg-dev file ;;
    test) echo python3 python3-venv libgtest-dev libgmock-dev libbenchmark-dev clang-format-14 openssl zstd \
      haproxy nginx-light chromium chromium-driver golang-go pkg-config dpkg-dev file ;;
    bench) echo libbenchmark-dev ;;
    peers) echo python3 python3-venv ;;
    fuzz) echo clang-14 llvm-14 libclang-rt-14-dev ;;
    lint) echo python3 clang-14 clang-tidy-14 clang-format-14 libgtest-dev libgmock-dev libbenchmark-dev ;;
    *)
      echo "install_deps.sh: unknown group '$1' (build, install, package, test, bench, peers, fuzz, lint)" >&2
      exit 2
      ;;
  esac
}

[ $# -gt 0 ] || set -- build
wanted=()
for group in "$@"; do
  names=$(packages_of "$group")
  read -r -a names <<<"$names"
  wanted+=("${names[@]}")
done

# On other systems users install packages themselves; CMake names missing ones.
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  exit 0
fi
installed=$(dpkg-query -W -f '${Status} ${Package}\n' "${wanted[@]}" 2>/dev/null |
  sed -n 's/^install ok installed //p' || true)
missing=$(printf '%s\n' "${wanted[@]}" | sort -u | grep -vxF "${installed:-none}" || true)
[ -n "$missing" ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "install_deps.sh: needs root or sudo to install:" $missing >&2
    exit 1
  }
  as_root=(sudo)
fi
echo "Installing:" $missing
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=300)
# The package lists may be absent (a bare image) or old (a package has moved on): fetch them, then try again.
install() { "${apt[@]}" install --no-install-recommends $missing >"$log" 2>&1; }
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! install; then
  "${apt[@]}" -o Acquire::Retries=3 update >"$log" 2>&1 && install || {
    cat "$log" >&2
    echo "install_deps.sh: could not install:" $missing >&2
    exit 1
  }
fi
