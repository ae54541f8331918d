#!/bin/sh
# Before a removal (Debian says remove, Red Hat 0), and not before an upgrade.
set -e
case "$1" in
  remove | 0)
    if [ -d /run/systemd/system ]; then
      systemctl disable --now evictrail.service
    fi
    ;;
esac
