#include "kernels/cuda/sm90_mxfp8_stream.cuh"

namespace mx8::cuda {

const StreamEntry* sm90_stream_entries_fp8() { return StreamTable<Act::kFp8>::kEntries; }

}  // namespace mx8::cuda
