#!/bin/sh
# Plans with OpenTofu, waits for a person, applies, and tells Courant of each step.
#
# Needs COURANT_URL, COURANT_API_KEY and COURANT_ORG, and STACK: the name of what is deployed. TOFU names another tool with
# the same commands, COMMIT and BRANCH what is deployed, WAIT how many seconds a person has to confirm.
set -eu

: "${STACK:?the name of the stack}"
tofu=${TOFU:-tofu}
run=

# Whatever ends this script early ends the run that is under way.
ended() {
  code=$?
  if [ -n "$run" ]; then
    courant deployments finish --run "$run" --status failed --error "the pipeline ended with code $code" >&2 || true
  fi
  exit "$code"
}
trap ended EXIT
trap 'exit 130' INT TERM

# Sets deployment, status and run.
said=$(courant deployments start --stack "$STACK" --create-stack ${COMMIT:+--commit "$COMMIT"} ${BRANCH:+--branch "$BRANCH"})
eval "$said"

code=0
courant deployments report --run "$run" -- "$tofu" plan -detailed-exitcode -out=plan.bin >&2 || code=$?
case $code in
  0 | 2) "$tofu" show -json plan.bin > plan.json ;;
  *) exit "$code" ;;
esac
said=$(courant deployments finish --run "$run" --detailed-exitcode "$code" --plan-json plan.json)
eval "$said"
run=
if [ "$status" != awaiting_confirmation ]; then
  echo "$deployment: $status"
  exit 0
fi

echo "$deployment waits for somebody to confirm it" >&2
said=$(courant deployments start --deployment "$deployment" --wait "${WAIT:-3600}")
eval "$said"
courant deployments report --run "$run" -- "$tofu" apply plan.bin >&2
said=$(courant deployments finish --run "$run" --status succeeded)
eval "$said"
run=
echo "$deployment: $status"
