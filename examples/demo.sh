#!/usr/bin/env bash
# Train a small policy and watch it learn, then let leverl find better settings for it and prove them.
# No download, no account, no GPU. Results go to ./demo; running it again adds to them under new names.
set -euo pipefail

stamp=$(date +%m%d-%H%M%S)
leverl train demo --out demo/runs --name "sort-$stamp"
echo
leverl tune demo --out demo/studies --name "tune-$stamp"
