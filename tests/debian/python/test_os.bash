# What test_os does: the same on Linux and on the kernel.
python3 -m unittest -v test.test_os >said 2>&1; status=$?
grep -E '^(test|Test|setUp)[^ ]* .*\.\.\. ' said | sed -E 's/ \.\.\. .*(ok|FAIL|ERROR|skipped.*|expected failure)$/ ... \1/' | sort
grep -E '^(FAIL|ERROR):|Error: ' said
echo "status $status"
