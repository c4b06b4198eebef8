use strict; use warnings; use List::Util qw(sum max reduce); use Digest::MD5 qw(md5_hex); use POSIX qw(floor strftime); use Time::Local; use Data::Dumper; use File::Temp; use Encode;
open my $f, "<", "corpus.txt" or die; my %n; while (<$f>) { $n{lc $1}++ while /(\w+)/g } close $f;
my @top = (sort { $n{$b} <=> $n{$a} || $a cmp $b } keys %n)[0..3]; print join(" ", map {"$_=$n{$_}"} @top), "\n";
print sum(values %n), " ", md5_hex(join ",", sort keys %n), " ", strftime("%F", gmtime 86400), "\n";
$Data::Dumper::Sortkeys = 1; print Dumper({a => [1,2], b => \"x"}); local $SIG{ALRM} = sub { die "alarm\n" };
eval { alarm 1; 1 while 1 }; print STDERR $@; open my $o, ">", "made.txt"; print $o "x" x 5000; close $o; rename "made.txt", "moved.txt"; exit 6;
