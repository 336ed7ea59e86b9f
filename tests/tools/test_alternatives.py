"""The links of update-alternatives, read out of scripts in the forms that Debian's have."""

from __future__ import annotations

from labs.tools.guest.alternatives import links_of, make_links

EDITOR = """\
set -e
if [ "$1" = "configure" ]; then
    update-alternatives --quiet --install /usr/bin/editor editor /bin/small 40 \\
      --slave /usr/share/man/man1/editor.1.gz editor.1.gz \\
      /usr/share/man/man1/small.1.gz
fi
"""

VIRTUAL_MACHINE = """\
basedir=/usr/lib/vm
priority=1711
computed=$(cat /etc/vm)
tools='vm compile
debug'
for i in $tools; do
    unset slave1 || true
    slave1="--slave $(manual $i)"
    # update-alternatives --install /old old /old 1
    update-alternatives \\
        --install \\
        /usr/bin/$i \\
        ${i} \\
        $basedir/bin/$i \\
        $priority \\
        $slave1
done
update-alternatives --install "/usr/bin/exec" exec "${basedir}/exec" "$priority" || true
update-alternatives --install /usr/bin/late late $computed/late 5
update-alternatives --remove gone /usr/bin/gone
"""


def test_one_command_with_a_second_link():
    assert list(links_of(EDITOR)) == [
        (40, "/usr/bin/editor", "/bin/small"),
        (40, "/usr/share/man/man1/editor.1.gz", "/usr/share/man/man1/small.1.gz"),
    ]


def test_variables_and_loops():
    tools = [(1711, f"/usr/bin/{i}", f"/usr/lib/vm/bin/{i}") for i in ("vm", "compile", "debug")]
    found = list(links_of(VIRTUAL_MACHINE))
    assert found[:4] == [*tools, (1711, "/usr/bin/exec", "/usr/lib/vm/exec")]
    assert found[4:] == [(5, "/usr/bin/late", "/late")], "what is computed is empty"


def test_the_highest_priority_that_is_there(tmp_path):
    """No link to what no package has, and none in the place of a file."""
    for path in ("bin/small", "bin/large", "usr/bin/vm"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("")
    larger = EDITOR.replace("/bin/small 40", "/bin/large 100")
    absent = EDITOR.replace("/bin/small 40", "/bin/absent 200")
    make_links([larger, EDITOR, absent, VIRTUAL_MACHINE], tmp_path)
    assert (tmp_path / "usr/bin/editor").readlink().as_posix() == "/bin/large"
    assert sorted(path.name for path in (tmp_path / "usr/bin").iterdir()) == ["editor", "vm"]
    assert not (tmp_path / "usr/bin/vm").is_symlink()
    assert not (tmp_path / "usr/share").exists()
