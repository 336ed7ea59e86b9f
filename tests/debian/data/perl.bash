# What perl does: the same on Linux and on the kernel.
cat >words.pl <<'END'
use strict; use warnings;
my %count; $count{lc $_}++ for map { /(\w+)/g } <DATA>;
printf "%-6s %d\n", $_, $count{$_} for sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
__DATA__
the cat and the dog and the bird
The end
END
perl words.pl
perl -e 'print join(",", map { $_ ** 2 } grep { $_ % 2 } 1 .. 9), "\n"; print 2 ** 53 + 1, " ", 10 / 3, " ", 1e21, " ", -7 % 3, "\n"'
perl -ne 'print if /a(.)\1/' <<<$'baab\nabba\nacc'
perl -e 'my @q = (5, 3, 9); my ($min) = sort { $a <=> $b } @q; print "$min @q[0, 2] $#q\n"; local $, = "-"; print reverse(@q), "\n"'
perl -MList::Util=sum,max,shuffle -e 'print sum(1 .. 100), " ", max(3, 9, 2), "\n"'
perl -MPOSIX -e 'print POSIX::floor(-1.5), " ", strftime("%Y-%m-%d", gmtime(1e9)), " ", POSIX::strtol("ff", 16), "\n"'
perl -MDigest::MD5=md5_hex -MDigest::SHA=sha256_hex -e 'print md5_hex("x" x 10000), " ", sha256_hex("abc"), "\n"'
perl -MData::Dumper -e '$Data::Dumper::Sortkeys = 1; $Data::Dumper::Indent = 1; print Dumper({ a => [1, 2], b => { c => undef } })'
perl -MMIME::Base64 -e 'print encode_base64("hello perl")'
perl -MTime::HiRes=sleep -e 'sleep 0.01; print "slept\n"'
perl -MStorable=dclone -e 'my $x = dclone({ a => [1 .. 3] }); print "@{$x->{a}}\n"'
perl -MFile::Temp=tempfile -e 'my ($f, $n) = tempfile(UNLINK => 1); print $f "x\n" x 3; close $f; print -s $n, "\n"'
perl -MFile::Find -e 'mkdir "d"; open F, ">d/x"; find(sub { print "$File::Find::name\n" }, "d")'
perl -e 'pipe(R, W); if (my $p = fork) { close W; print "child said: ", <R>; waitpid $p, 0; print $? >> 8, "\n" } else { close R; print W "hi\n"; close W; exit 5 }'
perl -e '$SIG{ALRM} = sub { print "alarm\n"; exit }; alarm 1; select undef, undef, undef, 5'
perl -e '$SIG{USR1} = sub { print "got $_[0]\n" }; kill USR1 => $$; my $out = `echo from a shell`; print $out; print system("exit 3") >> 8, "\n"'
perl -e 'open my $f, "+>", "data"; print $f "line $_\n" for 1 .. 5; seek $f, 7, 0; print scalar <$f>; print tell($f), "\n"; truncate $f, 10; print -s $f, "\n"; use Fcntl ":flock"; print flock($f, LOCK_EX) ? "locked\n" : "no: $!\n"'
perl -Mbigint -e 'print 2 ** 200, "\n"; print 100->bfac() % 1000000007, "\n"'
perl -e 'my $s = "x" x 1_000_000; my $n = () = $s =~ /x/g; print "$n\n"; my @a = sort { $a <=> $b } map { ($_ * 7919) % 100003 } 1 .. 20000; print "@a[0, 9999, 19999]\n"'
perl -e 'print sprintf("%08.3f|%-5s|%+d|%x|%b|%e|%s", 3.14159, "ab", 5, 255, 5, 12345.678, 1e15), "\n"; print pack("nNvV", 1, 2, 3, 4) eq "\0\1\0\0\0\2\3\0\4\0\0\0" ? "packed\n" : "no\n"'
perl -e 'package A; sub new { bless { n => $_[1] }, $_[0] } sub n { $_[0]{n} } package B; our @ISA = "A"; sub n { 2 * $_[0]->SUPER::n } package main; print B->new(21)->n, "\n"; eval { die { code => 7 } }; print $@->{code}, "\n"; print "sub: ", (sub { join ",", @_ })->(1, 2), "\n"'
perl -MEncode -CS -e 'print length(decode("UTF-8", "\xc3\xa4\xe2\x82\xac")), " ", uc("\x{e4}"), "\n"'
perl -MJSON -e 'print JSON->new->canonical->pretty->encode({ a => [1, "two", undef], b => { c => 3.5 } })'
perl -i.bak -pe 's/line/LINE/' words.pl; grep -c LINE words.pl; perl -c words.pl 2>&1; perl -v | head -2 | tail -1 | cut -c1-20
perl -e 'opendir D, "."; print join(" ", sort grep { !/^\./ } readdir D), "\n"; my @s = stat "words.pl"; print "$s[7] ", sprintf("%o", $s[2]), "\n"; print -d "d" ? "dir\n" : "no\n"; rename "d/x", "y"; print -e "y" ? "moved\n" : "no\n"; unlink "y"; symlink "words.pl", "l"; print readlink("l"), "\n"'
perl -e 'use threads; print "threads: ", threads->create(sub { 42 })->join, "\n"' 2>&1
