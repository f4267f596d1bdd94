# Reads what ctest has printed and then its LastTest.log, and prints lines of four fields, separated
# by tabs: CONFIGURATION passed|failed|skipped NUMBER TEST, to be added up, and CONFIGURATION
# fail|skip|reduced - TEXT, to be listed. What a test says of itself counts:
#   a program of the library check   "100%: Checks: N, Failures: N, Errors: N"
#   a shell test                     "pass: NAME", "fail: NAME", "skip: NAME: REASON"
#   either                           "skipped: REASON", "WHAT: reduced: N of M"
# else what ctest says of it. The end of a failed test's output goes to the file `failed`.

BEGIN {
	OFS = "\t"
	TAIL = 40
}

# "1/6 Test #1: unit/wire ....   Passed    0.00 sec", "...***Exception: SegFault  0.00 sec"
FNR == NR {
	if (match($0, /^ *[0-9]+\/[0-9]+ Test +#[0-9]+: /)) {
		text = substr($0, RLENGTH + 1)
		name = text
		sub(/ .*/, "", name)
		sub(/^[^ ]* \.* *(\*\*\*)?/, "", text)
		sub(/ +[0-9.]+ sec.*/, "", text)
		status[name] = text
	}
	next
}

/^[0-9]+\/[0-9]+ Test: / {
	test = $0
	sub(/^[^:]*: /, "", test)
	n_lines = n_passed = n_failed = n_skipped = in_output = 0
	reason = ""
	delete reduced
}

/^Output:$/ && !in_output { getline; in_output = 1; next }
/^<end of output>$/ { in_output = 0; next }
/^Test (Passed|Failed)\.$/ && !in_output { finish(status[test]); next }

!in_output { next }
{ lines[n_lines++] = $0 }

/^[0-9]+%: Checks: / {
	n_failed += $5 + $7
	n_passed += $3 - $5 - $7
	next
}
/:[FE]:[^:]*:[^:]*:-?[0-9]+: / { list("fail", $0) }
/^pass: / { n_passed++ }
/^fail: / { n_failed++; list("fail", substr($0, 7)) }
/^skip: / { n_skipped++; list("skip", substr($0, 7)) }
/^skipped: / { reason = substr($0, 10) }
/: reduced: / && !($0 in reduced) { list("reduced", $0); reduced[$0] }

function list(kind, text) { print configuration, kind, "-", test ": " text }
function add(kind, number) { if (number) print configuration, kind, number, test }

function finish(how) {
	if (how == "Skipped" && !n_skipped) {
		n_skipped = 1
		list("skip", reason != "" ? reason : "no reason given")
	}
	if (how == "Passed" && n_passed + n_failed + n_skipped == 0)
		n_passed = 1
	if (how != "Passed" && how != "Skipped" && !n_failed) {
		n_failed = 1
		list("fail", how)
	}
	add("passed", n_passed)
	add("failed", n_failed)
	add("skipped", n_skipped)
	if (n_failed)
		keep_output()
}

function keep_output(    i) {
	print "---- " configuration ": " test > failed
	for (i = n_lines > TAIL ? n_lines - TAIL : 0; i < n_lines; i++)
		print "  " lines[i] > failed
}
