#!/usr/bin/env bash
# A complete Tidewheel worker for bash 4, curl and awk: one job at a time, kinds are executables in a folder.
#
#   TIDE_URL=http://127.0.0.1:8433 ./worker.sh tasks
#
# A task gets its arguments as JSON on standard input, may write its result as JSON to the file $TIDE_RESULT, and what it
# prints becomes the log of the job. The protocol: docs/reference/worker-protocol.md
set -u -o pipefail
tasks=${1:?"the folder with the executables, one for each kind"}
url=${TIDE_URL:-http://127.0.0.1:8433}
ttl=${TTL:-30}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

# Signals: a trap that runs while bash reads a `$(...)` breaks it (a fault of bash 5.2). So this shell only waits and leaves
# word of what it heard, and the work is done in a child that has no traps.
hear() { if [ -e "$scratch/leave" ]; then : >"$scratch/hurry"; else : >"$scratch/leave"; fi; }
leaving() { [ -e "$scratch/leave" ] || ! kill -0 "$$" 2>/dev/null; }
hurried() { [ -e "$scratch/hurry" ] || ! kill -0 "$$" 2>/dev/null; }

say() { printf '%s %s\n' "$(date -u +%FT%TZ)" "$*" >&2; }

# Requests: `answer` and `code` say what came of one.
request() { # method path body [seconds to wait]
  local headers=(-H 'content-type: application/json')
  [ -n "${TIDE_KEY:-}" ] && headers+=(-H "authorization: Bearer $TIDE_KEY")
  [ -n "${4:-}" ] && headers+=(-H "prefer: wait=$4")
  [ -n "$3" ] && headers+=(--data-binary "@-")
  printf '%s' "$3" | curl -sS --max-time $((${4:-0} + 20)) -X "$1" "${headers[@]}" -w '\n%{http_code}' "$url$2" \
    >"$scratch/answer" 2>"$scratch/trouble"
  answer=$(sed '$d' "$scratch/answer")
  code=$(sed -n '$p' "$scratch/answer")
  [ "${code:-000}" != 000 ] || { code=000; say "no answer: $(cat "$scratch/trouble")"; }
}

# What may be sent twice is sent until it has arrived, or was refused for good.
surely() {
  local pause=1
  while request "$@"; [ "$code" = 000 ] || [ "$code" = 429 ] || [ "$code" -ge 500 ]; do
    say "$1 $2: $code; again in $pause s"
    sleep "$pause"
    pause=$((pause < 10 ? pause * 2 : 10))
  done
}

field() { # of the JSON on standard input: the first value of that name, as text if it is one
  awk -v name="\"$1\":" '
    { text = text $0 "\n" }
    END {
      at = index(text, name); if (!at) exit
      rest = substr(text, at + length(name)); depth = 0; quoted = 0
      for (i = 1; i <= length(rest); i++) {
        c = substr(rest, i, 1)
        if (quoted) { if (c == "\\") i++; else if (c == "\"") { quoted = 0; if (!depth) break } }
        else if (c == "\"") quoted = 1
        else if (c == "{" || c == "[") depth++
        else if (c == "}" || c == "]" || c == ",") { if (c != "," && depth) { depth--; if (!depth) break } else if (!depth) { i--; break } }
      }
      value = substr(rest, 1, i)
      if (value ~ /^".*"$/) value = substr(value, 2, length(value) - 2)
      print value
    }'
}

quote() { # standard input as the inside of a JSON string
  LC_ALL=C tr -d '\000-\010\013-\037' | awk '
    { gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); gsub(/\t/, "\\t"); printf "%s%s", (NR > 1 ? "\\n" : ""), $0 }'
}

register() {
  local kinds
  kinds=$(find "$tasks" -maxdepth 1 -type f -perm -u+x -printf '"%f",')
  surely POST /v1/workers "{\"name\": \"$(hostname)/bash-$$\", \"kinds\": [${kinds%,}], \"ttl\": $ttl}"
  [ "$code" = 201 ] || { say "cannot register: $answer"; exit 1; }
  worker=/v1/workers/$(field id <<<"$answer")
  beat_every=$(field beat_every <<<"$answer")
  beat_every=${beat_every%.*}
  lease_until=$((SECONDS + ttl))
  say "registered as ${worker##*/}"
}

# Renews the lease, which counts from before the beat was sent. Answers 1 once it is lost, 2 if the job shall stop.
beat() { # [job]
  local sent=$SECONDS
  request POST "$worker/heartbeat" ""
  if [ "$code" = 200 ]; then
    lease_until=$((sent + ttl))
    next_beat=$((sent + (beat_every > 0 ? beat_every : 1)))
    [ -n "${1:-}" ] && [[ $answer == *"\"$1\""* ]] && return 2
    return 0
  fi
  [ "$code" != 409 ] && [ "$code" != 404 ] && [ "$SECONDS" -lt "$lease_until" ]
}

ship_lines() { # job token
  local lines="" text
  while IFS= read -r text; do
    lines+="{\"job_id\": \"$1\", \"token\": $2, \"number\": $shipped, \"stream\": \"stdout\", \"text\": \"$(quote <<<"$text")\"},"
    shipped=$((shipped + 1))
  done < <(tail -n "+$((shipped + 1))" "$scratch/output" | head -n 500)
  if [ -n "$lines" ]; then surely POST /v1/logs "{\"lines\": [${lines%,}]}"; fi
}

settle() { # job token cause [more fields]
  surely POST "$worker/settle" "{\"ends\": [{\"job_id\": \"$1\", \"token\": $2, \"cause\": \"$3\"${4:-}}]}"
  say "job $1: $3, $(field verdict <<<"$answer")"
}

run() { # the claim's answer
  local job token kind timeout pid why="" ended=0 shipped=0 next_beat=$SECONDS began=$SECONDS
  job=$(field job_id <<<"$1") token=$(field token <<<"$1") kind=$(field kind <<<"$1") timeout=$(field timeout <<<"$1")
  timeout=${timeout%.*}
  : >"$scratch/output" && rm -f "$scratch/result"
  field args <<<"$1" >"$scratch/args"
  if grep -qE '"\$(secret|result_of)"' "$scratch/args"; then # this worker has no secrets, and puts no results in
    settle "$job" "$token" gave_up ', "error": {"reason": "error", "message": "this worker puts nothing in arguments"}'
    return
  fi
  TIDE_RESULT="$scratch/result" setsid "$tasks/$kind" <"$scratch/args" >"$scratch/output" 2>&1 &
  pid=$!
  while kill -0 "$pid" 2>/dev/null; do
    if [ "$SECONDS" -ge "$next_beat" ]; then
      beat "$job"
      case $? in 1) why=lost ;; 2) why=stopped ;; esac
    fi
    hurried && why=released
    [ $((SECONDS - began)) -ge "$((timeout > 0 ? timeout : 1))" ] && why=timeout
    if [ -n "$why" ]; then kill -KILL -- "-$pid" 2>/dev/null; break; fi
    ship_lines "$job" "$token"
    sleep 0.2
  done
  wait "$pid" 2>/dev/null || ended=$?
  if [ "$why" = lost ]; then say "the lease is lost: job $job is told to nobody"; return 1; fi
  ship_lines "$job" "$token"
  case $why in
    stopped | released) settle "$job" "$token" "$why" ;;
    timeout) settle "$job" "$token" failed ', "error": {"reason": "timeout", "message": "ran longer than its timeout"}' ;;
    *) report "$job" "$token" "$ended" ;;
  esac
}

report() { # job token exit-code
  local error
  error=", \"error\": {\"reason\": \"error\", \"message\": \"exit code $3: $(tail -n 1 "$scratch/output" | quote)\", \"exit_code\": $3}"
  case $3 in
    0)
      if [ -s "$scratch/result" ]; then settle "$1" "$2" returned ", \"result_text\": \"$(quote <"$scratch/result")\""
      else settle "$1" "$2" returned; fi ;;
    100) settle "$1" "$2" gave_up "$error" ;;
    *) settle "$1" "$2" failed "$error" ;;
  esac
}

work() {
  register
  next_beat=$SECONDS
  while ! leaving; do
    wait_for=$((ttl > 12 ? ttl / 6 : 1)) # much shorter than the lease: this loop beats between two claims
    request POST "$worker/claim" '{"limit": 1}' "$wait_for"
    if [ "$code" = 200 ] && [[ $answer == *'"job_id"'* ]]; then
      run "$answer" || leaving || register
    elif [ "$code" = 409 ] || [ "$code" = 404 ]; then
      register
    elif [ "$code" != 200 ] && ! leaving; then
      sleep 1 # and see whether a claim happened whose answer was lost
      request GET "$worker/runs" ""
      if [ "$code" = 200 ] && [[ $answer == *'"job_id"'* ]]; then run "$answer" || register; fi
    fi
    if ! leaving && [ "$SECONDS" -ge "$next_beat" ]; then
      beat || { [ $? -eq 1 ] && register; }
    fi
  done
  surely POST "$worker/deregister" ""
  say "left"
}

trap hear TERM INT
work &
while kill -0 $! 2>/dev/null; do wait $!; done
wait $!
