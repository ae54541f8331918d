#!/bin/sh
# After a removal. What was recorded stays in /var/lib/evictrail.
set -e
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
fi
