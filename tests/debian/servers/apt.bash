# What apt does with a repository in a folder: the same on Linux and on the kernel.
export SOURCE_DATE_EPOCH=1700000000 # the size of a package depends on its times
mkdir -p /var/lib/apt/lists/partial /var/cache/apt/archives/partial /etc/apt/apt.conf.d /etc/apt/preferences.d /var/lib/dpkg /var/log/apt; touch /var/lib/dpkg/status; echo root:x:0: >/etc/group; 
mkdir repo; mkdir -p p/DEBIAN p/opt; printf 'Package: t2\nVersion: 1.0\nArchitecture: all\nMaintainer: x <x@y>\nDescription: test\n' > p/DEBIAN/control; dpkg-deb -b p repo/t2.deb >/dev/null; (cd repo; printf "Package: t2\nVersion: 1.0\nArchitecture: all\nMaintainer: x <x@y>\nDescription: test\nFilename: ./t2.deb\nSize: $(stat -c %s t2.deb)\nSHA256: $(sha256sum t2.deb | cut -d' ' -f1)\n\n" > Packages)
echo "deb [trusted=yes] file:$PWD/repo ./" > /etc/apt/sources.list; chmod -R a+rX .
apt-get -o APT::Sandbox::User=root update 2>&1 | sed 's/[0-9.]* [kMB]*\/s//;s/in [0-9]*s.*//'; apt-cache policy t2 2>&1; apt-get -y -o APT::Sandbox::User=root -o Dpkg::Use-Pty=0 install t2 2>&1 | tail -8; dpkg -l t2 | tail -1; apt list --installed 2>/dev/null; apt-get -y remove t2 2>&1 | tail -3
