#!/bin/sh
# Plans with OpenTofu, waits for a person, applies, and tells Courant of each step.
#
# Needs COURANT_URL, COURANT_API_KEY and COURANT_ORG, and STACK: the name of what is deployed. TOFU names another tool with
# the same commands, COMMIT and BRANCH what is deployed, WAIT how many seconds a person has to confirm.
set -eu

: "${STACK:?the name of the stack}"
tofu=${TOFU:-tofu}
run='' worker='' stopped=''

# Whatever ends this script early ends the run that is under way.
ended() {
  code=$?
  if [ -n "$run" ]; then
    courant deployments finish --run "$run" --status failed --error "the pipeline ended with code $code" >&2 || true
  fi
  exit "$code"
}
trap ended EXIT

# A signal ends this script once its tool has ended. At an interrupt a terminal has told the tool already, and a second
# signal would break it off.
stop() {
  [ -z "$worker" ] || kill -TERM "$worker" 2>/dev/null || true
}
trap 'stopped=130; [ -n "$run" ] || stop' INT
trap 'stopped=143; stop' TERM

# Runs a command in the background, so that signals are heard at once. Sets code to its exit code.
follow() {
  [ -z "$stopped" ] || exit "$stopped"
  "$@" &
  worker=$!
  # A signal ends the wait, and not yet the command.
  while
    code=0
    wait "$worker" || code=$?
    kill -0 "$worker" 2>/dev/null
  do :; done
  worker=''
  [ -z "$stopped" ] || exit "$stopped"
}

# Sets deployment, status and run.
said=$(courant deployments start --stack "$STACK" --create-stack ${COMMIT:+--commit "$COMMIT"} ${BRANCH:+--branch "$BRANCH"})
eval "$said"

follow courant deployments report --run "$run" -- "$tofu" plan -detailed-exitcode -out=plan.bin >&2
case $code in
  0 | 2) "$tofu" show -json plan.bin > plan.json ;;
  *) exit "$code" ;;
esac
said=$(courant deployments finish --run "$run" --detailed-exitcode "$code" --plan-json plan.json)
eval "$said"
run=''
if [ "$status" != awaiting_confirmation ]; then
  echo "$deployment: $status"
  exit 0
fi

echo "$deployment waits for somebody to confirm it" >&2
follow courant deployments start --deployment "$deployment" --wait "${WAIT:-3600}" > confirmed.env
[ "$code" -eq 0 ] || exit "$code"
. ./confirmed.env
follow courant deployments report --run "$run" -- "$tofu" apply plan.bin >&2
[ "$code" -eq 0 ] || exit "$code"
said=$(courant deployments finish --run "$run" --status succeeded)
eval "$said"
run=''
echo "$deployment: $status"
