# What subversion does: the same on Linux and on the kernel.
export HOME=$PWD USER=x; svnadmin create s; svn -q mkdir file://$PWD/s/t -m t; svn -q co file://$PWD/s w; cd w; echo x > t/f; svn -q add t/f; svn ci -q -m f; svn up -q; svn log -q | grep -c r; svnlook youngest ../s
