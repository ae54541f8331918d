#!/usr/bin/env bash
# Makes sure that the tools are there with which the tests of test/release open a release as its users do: dpkg-deb,
# rpm, rpm2cpio, cpio, ruby and systemd-analyze. What is missing it installs from Debian's or Ubuntu's packages, as root
# or by a sudo that asks nothing; that starts no service. Anywhere else it says what to install and fails.
set -euo pipefail

say() { echo "ensure-release-tools: $*" >&2; }

# The package that has each tool.
declare -A package=([dpkg-deb]=dpkg [rpm]=rpm [rpm2cpio]=rpm2cpio [cpio]=cpio [ruby]=ruby [systemd-analyze]=systemd)

find_missing() {
  missing=()
  local tool
  for tool in "${!package[@]}"; do
    command -v "$tool" >/dev/null || missing+=("${package[$tool]}")
  done
}

explain() {
  say "missing: ${missing[*]}, and $1. Install these packages with the package manager of this system"
  exit 1
}

as_root() {
  if [[ $(id -u) -eq 0 ]]; then "$@"; else sudo -n "$@"; fi
}

apt() {
  as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 \
    apt-get -o DPkg::Lock::Timeout=300 "$@" </dev/null >>"$log" 2>&1
}

find_missing
if [[ ${#missing[@]} -eq 0 ]]; then exit 0; fi
command -v apt-get >/dev/null || explain "there is no apt-get here"
as_root true 2>/dev/null || explain "only root may install them"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
say "installing ${missing[*]}"
if ! apt install -y --no-install-recommends "${missing[@]}"; then
  apt update || true # one broken source does not matter
  apt install -y --no-install-recommends "${missing[@]}" || {
    tail -n 5 "$log" >&2
    explain "apt-get cannot install them"
  }
fi
find_missing
[[ ${#missing[@]} -eq 0 ]] || explain "they do not have the tools"
