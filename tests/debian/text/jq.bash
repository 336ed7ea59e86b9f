# What jq does: the same on Linux and on the kernel.
echo '{"a": [1, 2, {"b": "x"}], "c": null, "d": 1.5e3}' >f.json
jq . f.json; jq -c '.a[2].b, (.a | length), keys, .d + 1' f.json; jq -r '.a[2].b' f.json
echo '[3,1,2]' | jq -c 'sort, map(. * 2), add, (. | @csv), min, reverse, index(1)'
jq -n '[range(5)] | {sum: add, list: .}' ; jq -n --arg x hi '{$x}' -c; echo '"a b"' | jq '@uri, split(" "), ascii_upcase, test("a.b")' -c
jq -e .nothing f.json; echo $?; echo '{' | jq . 2>&1; echo $?; seq 1000 | jq -s 'add'; jq -n '"2015-03-05T23:51:47Z" | fromdate, now > 0'
