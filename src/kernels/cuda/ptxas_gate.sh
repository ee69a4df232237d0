#!/bin/sh
# Compiler launcher: runs the given compiler command and fails when ptxas reports that it serialised
# wgmma (any C75xx line), which is a warning to the compiler and a threefold slowdown to us.
log=$(mktemp)
"$@" >"$log" 2>&1
status=$?
cat "$log" >&2
if grep -q '(C75[0-9][0-9])' "$log"; then
  echo "error: ptxas serialised wgmma instructions (C75xx above)" >&2
  status=1
fi
rm -f "$log"
exit $status
