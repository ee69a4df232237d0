/* Uses the installed header and library the way another engine would; needs no GPU. */
#include <mx8/kernels.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
  mx8_weight_desc desc;
  memset(&desc, 0, sizeof desc);
  desc.struct_size = sizeof desc;
  desc.n = 100;
  desc.k = 96;
  desc.activations = MX8_BF16;
  size_t bytes = 0, scales = 1;
  if (mx8_packed_size(&desc, &bytes, &scales) != MX8_OK || bytes != 2 * 2 * 4224 || scales != 0) {
    fprintf(stderr, "packed size %zu, %zu: %s\n", bytes, scales, mx8_last_error());
    return 1;
  }
  unsigned char* codes = calloc(100 * 96, 1);
  unsigned char* exponents = calloc(100 * 3, 1);
  unsigned char* packed = malloc(bytes);
  if (mx8_pack_cpu(&desc, codes, exponents, packed, NULL) != MX8_OK) {
    fprintf(stderr, "%s\n", mx8_last_error());
    return 1;
  }
  desc.k = 97;
  if (mx8_packed_size(&desc, &bytes, &scales) != MX8_INVALID_ARGUMENT || !strstr(mx8_last_error(), "97")) return 1;
  free(codes), free(exponents), free(packed);
  printf("mx8 kernels %s\n", mx8_kernels_version());
  return 0;
}
