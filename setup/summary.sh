# Counts test results. Sourced by ./dev.

passed=0 failed=0 skipped=0

# Adds one result: pass, fail or skip.
count() {
  case $1 in
    pass) passed=$((passed + 1)) ;;
    fail) failed=$((failed + 1)) ;;
    skip) skipped=$((skipped + 1)) ;;
  esac
}

# Adds the results of a ctest run in a build folder. An entry that runs Catch2 cases counts as its cases, any
# other as one; a failed entry is at least one failure, even if it died before it could write its cases.
count_ctest() {
  local build=$1 name status good bad skips
  [ -e "$build/junit.xml" ] || {
    count fail
    return
  }
  while read -r status name; do
    read -r good bad skips < <(sed -n 's/.*<OverallResultsCases successes="\([0-9]*\)" failures="\([0-9]*\)" expectedFailures="[0-9]*" skips="\([0-9]*\)".*/\1 \2 \3/p' \
      "$build/test-results/$name.xml" 2>/dev/null) || good=
    case $status in
      fail) [ "${bad:-0}" -gt 0 ] || bad=1 ;;
      run) [ -n "$good" ] || good=1 ;;
      *) [ -n "$good" ] || skips=1 ;;
    esac
    passed=$((passed + ${good:-0})) failed=$((failed + ${bad:-0})) skipped=$((skipped + ${skips:-0}))
    [ "${skips:-0}" = 0 ] || say "$name: $skips skipped"
    [ "${bad:-0}" = 0 ] || say "$name: $bad FAILED"
  done < <(sed -n 's/.*<testcase name="\([^"]*\)".* status="\([a-z]*\)".*/\2 \1/p' "$build/junit.xml")
}
