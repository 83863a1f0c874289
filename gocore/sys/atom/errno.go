package atom

import "golang.org/x/sys/unix"

const eintr = unix.EINTR
