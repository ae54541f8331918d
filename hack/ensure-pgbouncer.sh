#!/usr/bin/env bash
# Makes sure that a pgbouncer is in bin/debian: the tests put it between evictrail and Postgres. It takes the program, and the
# libraries that this machine has not, out of Debian's or Ubuntu's packages without installing them, so that no service starts
# and nothing outside of bin changes. EVICTRAIL_PGBOUNCER may name another one; anywhere else it says what to do and fails.
set -euo pipefail
cd "$(dirname "$0")/.."

here=bin/debian/pgbouncer

say() { echo "ensure-pgbouncer: $*" >&2; }

# runs reports whether the program is a pgbouncer that starts.
runs() { "$1" --version 2>/dev/null </dev/null | grep -q '^PgBouncer [0-9]'; }

explain() {
  say "no pgbouncer: $1."
  say "It is in the package pgbouncer of Debian, Ubuntu and Fedora, and of Homebrew: install it and set EVICTRAIL_PGBOUNCER"
  say "to its path"
  exit 1
}

if [[ -n ${EVICTRAIL_PGBOUNCER:-} ]]; then
  if runs "$EVICTRAIL_PGBOUNCER"; then exit 0; fi
  explain "EVICTRAIL_PGBOUNCER=$EVICTRAIL_PGBOUNCER is none"
fi
if runs "$here"; then exit 0; fi

command -v apt-get >/dev/null || explain "there is no apt-get here"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

download() { (cd "$work" && apt-get download "$@") </dev/null >>"$work/log" 2>&1; }

as_root() {
  if [[ $(id -u) -eq 0 ]]; then "$@"; else sudo -n "$@"; fi
}

say "taking pgbouncer out of its package, into $here"
if ! download pgbouncer; then
  as_root apt-get -o DPkg::Lock::Timeout=300 update </dev/null >>"$work/log" 2>&1 || true # one broken source does not matter
  download pgbouncer || { tail -n 5 "$work/log" >&2; explain "apt-get cannot download the package pgbouncer"; }
fi
# Its libraries that few machines have have other names in each release: its package names them.
libraries=$(dpkg-deb -f "$work"/pgbouncer_*.deb Depends | grep -oE 'lib(c-ares|event)[a-z0-9.-]*' | sort -u)
# shellcheck disable=SC2086 # one word each
download $libraries || { tail -n 5 "$work/log" >&2; explain "apt-get cannot download" $libraries; }

rm -rf "$here" "$here.d"
mkdir -p "$here.d"
for package in "$work"/*.deb; do
  dpkg-deb -x "$package" "$here.d"
done
cat >"$here" <<'WRAPPER'
#!/bin/sh
# Written by hack/ensure-pgbouncer.sh: the program, with the libraries beside it.
root=$(dirname "$(readlink -f "$0")")/pgbouncer.d/usr
LD_LIBRARY_PATH=$(echo "$root"/lib/*-linux-gnu*):$root/lib exec "$root/sbin/pgbouncer" "$@"
WRAPPER
chmod 755 "$here"
runs "$here" || explain "the one of this system does not run"
