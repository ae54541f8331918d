#!/bin/sh
# After an installation or an upgrade. The service is neither enabled nor started: it needs a kubeconfig first.
set -e
if command -v systemd-sysusers >/dev/null; then
  systemd-sysusers evictrail.conf
fi
if [ -d /run/systemd/system ]; then
  systemctl daemon-reload
  systemctl try-restart evictrail.service
fi
