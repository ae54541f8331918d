#!/usr/bin/env bash
# Makes sure that the binaries of a PostgreSQL server, 15 or newer, are on this machine: the embedded server of
# "evictrail run", "evictrail demo" and the tests uses them. Installs Debian's package where that is possible; no service
# is started and no cluster is created.
set -euo pipefail

say() { echo "ensure-postgres: $*" >&2; }

# good DIR: a server of version 15 or newer is there.
good() {
  [[ -x $1/postgres && -x $1/initdb ]] || return 1
  local major
  major=$("$1/postgres" --version | sed -E 's/^[^0-9]*([0-9]+).*/\1/')
  [[ $major -ge 15 ]]
}

found() {
  local dir
  if [[ -n ${EVICTRAIL_PG_BIN:-} ]]; then
    good "$EVICTRAIL_PG_BIN" && return 0
    say "EVICTRAIL_PG_BIN=$EVICTRAIL_PG_BIN has no PostgreSQL server of version 15 or newer"
    exit 1
  fi
  if command -v pg_config >/dev/null && good "$(pg_config --bindir)"; then return 0; fi
  for dir in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin /opt/homebrew/opt/postgresql*/bin /usr/local/opt/postgresql*/bin; do
    good "$dir" && return 0
  done
  if command -v postgres >/dev/null && good "$(dirname "$(command -v postgres)")"; then return 0; fi
  return 1
}

explain() {
  say "no PostgreSQL server (15 or newer) found, and it cannot be installed from here. Install it and try again:"
  say "  Debian, Ubuntu: sudo apt-get install postgresql      Fedora: sudo dnf install postgresql-server"
  say "  macOS: brew install postgresql@16      or set EVICTRAIL_PG_BIN to the directory of its binaries"
  exit 1
}

if found; then exit 0; fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  command -v sudo >/dev/null && sudo -n true 2>/dev/null || explain
  as_root=(sudo -n)
fi
command -v apt-get >/dev/null || explain

say "installing Debian's package postgresql: evictrail runs a server of its own (no service is started)"
# Debian's package makes a cluster and starts it unless it is told not to before.
if [[ ! -e /etc/postgresql-common/createcluster.conf ]]; then
  "${as_root[@]}" mkdir -p /etc/postgresql-common
  echo "create_main_cluster = false" | "${as_root[@]}" tee /etc/postgresql-common/createcluster.conf >/dev/null
fi
log=$(mktemp)
if ! { "${as_root[@]}" apt-get update && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y --no-install-recommends -o Dpkg::Options::=--force-confold postgresql; } >"$log" 2>&1; then
  tail -20 "$log" >&2
  rm -f "$log"
  explain
fi
rm -f "$log"
found || explain
