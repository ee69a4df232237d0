#include "checkpoint/filesystem_kind.h"

#include <sys/vfs.h>

#include <algorithm>
#include <iterator>

namespace mx8 {

namespace {

// From statfs(2), linux/magic.h and the file systems' own sources.
constexpr uint32_t kNetworkMagics[] = {
    0x00006969,  // NFS
    0x0000517B,  // SMB
    0xFF534D42,  // CIFS
    0xFE534D42,  // SMB2
    0x01021997,  // 9P
    0x65735546,  // FUSE: sshfs, object stores
    0x00C36400,  // Ceph
    0x0BD00BD0,  // Lustre
    0x47504653,  // GPFS
    0x19830326,  // BeeGFS
    0x5346414F,  // AFS
    0x6B414653,  // kAFS
    0x73757245,  // Coda
    0x786F4256,  // VirtualBox shared folders
};

}  // namespace

bool is_network_filesystem(uint32_t magic) {
  return std::find(std::begin(kNetworkMagics), std::end(kNetworkMagics), magic) !=
         std::end(kNetworkMagics);
}

bool lies_on_network_filesystem(const std::string& path) {
  struct statfs info;
  if (::statfs(path.c_str(), &info) != 0) return false;
  return is_network_filesystem(static_cast<uint32_t>(info.f_type));
}

}  // namespace mx8
