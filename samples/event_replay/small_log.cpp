#include "small_log.hpp"

const std::string small_log = R"(2025-06-24 14:36:25 startup archives unpack
2025-06-24 14:36:25 upgrade libsystemd0:amd64 252.36-1~deb12u1 252.38-1~deb12u1
2025-06-24 14:36:25 status triggers-pending libc-bin:amd64 2.36-9+deb12u10
2025-06-24 14:36:25 status half-configured libsystemd0:amd64 252.36-1~deb12u1
2025-06-24 14:36:25 status unpacked libsystemd0:amd64 252.36-1~deb12u1
2025-06-24 14:36:25 status half-installed libsystemd0:amd64 252.36-1~deb12u1
2025-06-24 14:36:25 status unpacked libsystemd0:amd64 252.38-1~deb12u1
2025-06-24 14:36:25 startup packages configure
2025-06-24 14:36:25 configure libsystemd0:amd64 252.38-1~deb12u1 <none>
2025-06-24 14:36:25 status unpacked libsystemd0:amd64 252.38-1~deb12u1
2025-06-24 14:36:25 status half-configured libsystemd0:amd64 252.38-1~deb12u1
2025-06-24 14:36:25 status installed libsystemd0:amd64 252.38-1~deb12u1
2025-06-24 14:36:25 startup archives unpack
2025-06-24 14:36:25 upgrade libudev1:amd64 252.36-1~deb12u1 252.38-1~deb12u1
2025-06-24 14:36:25 status half-configured libudev1:amd64 252.36-1~deb12u1
2025-06-24 14:36:25 status unpacked libudev1:amd64 252.36-1~deb12u1
2025-06-24 14:36:25 status half-installed libudev1:amd64 252.36-1~deb12u1
2025-06-24 14:36:25 status unpacked libudev1:amd64 252.38-1~deb12u1
2025-06-24 14:36:25 startup packages configure
2025-06-24 14:36:25 configure libudev1:amd64 252.38-1~deb12u1 <none>
2025-06-24 14:36:25 status unpacked libudev1:amd64 252.38-1~deb12u1
2025-06-24 14:36:25 status half-configured libudev1:amd64 252.38-1~deb12u1
2025-06-24 14:36:25 status installed libudev1:amd64 252.38-1~deb12u1
2025-06-24 14:36:25 startup packages configure
2025-06-24 14:36:25 trigproc libc-bin:amd64 2.36-9+deb12u10 <none>
2025-06-24 14:36:25 status half-configured libc-bin:amd64 2.36-9+deb12u10
2025-06-24 14:36:25 status installed libc-bin:amd64 2.36-9+deb12u10
2025-06-24 14:36:29 startup archives unpack
2025-06-24 14:36:29 install perl-modules-5.36:all <none> 5.36.0-7+deb12u2
2025-06-24 14:36:29 status half-installed perl-modules-5.36:all 5.36.0-7+deb12u2
2025-06-24 14:36:29 status unpacked perl-modules-5.36:all 5.36.0-7+deb12u2
2025-06-24 14:36:29 install libgdbm6:amd64 <none> 1.23-3
2025-06-24 14:36:29 status triggers-pending libc-bin:amd64 2.36-9+deb12u10
2025-06-24 14:36:29 status half-installed libgdbm6:amd64 1.23-3
2025-06-24 14:36:29 status unpacked libgdbm6:amd64 1.23-3
2025-06-24 14:36:29 install libgdbm-compat4:amd64 <none> 1.23-3
2025-06-24 14:36:29 status half-installed libgdbm-compat4:amd64 1.23-3
2025-06-24 14:36:29 status unpacked libgdbm-compat4:amd64 1.23-3
2025-06-24 14:36:29 install libperl5.36:amd64 <none> 5.36.0-7+deb12u2
2025-06-24 14:36:29 status half-installed libperl5.36:amd64 5.36.0-7+deb12u2
2025-06-24 14:36:30 status unpacked libperl5.36:amd64 5.36.0-7+deb12u2
2025-06-24 14:36:30 install perl:amd64 <none> 5.36.0-7+deb12u2
2025-06-24 14:36:30 status half-installed perl:amd64 5.36.0-7+deb12u2
2025-06-24 14:36:30 status unpacked perl:amd64 5.36.0-7+deb12u2
2025-06-24 14:36:30 install libssl3:amd64 <none> 3.0.16-1~deb12u1
2025-06-24 14:36:30 status half-installed libssl3:amd64 3.0.16-1~deb12u1
2025-06-24 14:36:31 status unpacked libssl3:amd64 3.0.16-1~deb12u1
2025-06-24 14:36:31 install libpython3.11-minimal:amd64 <none> 3.11.2-6+deb12u6
2025-06-24 14:36:31 status half-installed libpython3.11-minimal:amd64 3.11.2-6+deb12u6
2025-06-24 14:36:31 status unpacked libpython3.11-minimal:amd64 3.11.2-6+deb12u6
2025-06-24 14:36:31 install libexpat1:amd64 <none> 2.5.0-1+deb12u1
2025-06-24 14:36:31 status half-installed libexpat1:amd64 2.5.0-1+deb12u1
2025-06-24 14:36:31 status unpacked libexpat1:amd64 2.5.0-1+deb12u1
2025-06-24 14:36:32 install python3.11-minimal:amd64 <none> 3.11.2-6+deb12u6
2025-06-24 14:36:32 status half-installed python3.11-minimal:amd64 3.11.2-6+deb12u6
2025-06-24 14:36:32 status unpacked python3.11-minimal:amd64 3.11.2-6+deb12u6
2025-06-24 14:36:32 startup packages configure
2025-06-24 14:36:32 configure libssl3:amd64 3.0.16-1~deb12u1 <none>
2025-06-24 14:36:32 status unpacked libssl3:amd64 3.0.16-1~deb12u1
2025-06-24 14:36:32 status half-configured libssl3:amd64 3.0.16-1~deb12u1
2025-06-24 14:36:32 status installed libssl3:amd64 3.0.16-1~deb12u1
2025-06-24 14:36:32 configure libpython3.11-minimal:amd64 3.11.2-6+deb12u6 <none>
2025-06-24 14:36:32 status unpacked libpython3.11-minimal:amd64 3.11.2-6+deb12u6
2025-06-24 14:36:32 status half-configured libpython3.11-minimal:amd64 3.11.2-6+deb12u6
2025-06-24 14:36:32 status installed libpython3.11-minimal:amd64 3.11.2-6+deb12u6
2025-06-24 14:36:32 configure libexpat1:amd64 2.5.0-1+deb12u1 <none>
2025-06-24 14:36:32 status unpacked libexpat1:amd64 2.5.0-1+deb12u1
2025-06-24 14:36:32 status half-configured libexpat1:amd64 2.5.0-1+deb12u1
2025-06-24 14:36:32 status installed libexpat1:amd64 2.5.0-1+deb12u1
2025-06-24 14:36:32 configure python3.11-minimal:amd64 3.11.2-6+deb12u6 <none>
)";
