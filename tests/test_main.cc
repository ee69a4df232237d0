// The main of every test program. Exits with 77, which ctest shows as "skipped", when every test of
// the program was skipped: a skipped test must not read as passed.
#include <gtest/gtest.h>

#include <cstdio>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int rc = RUN_ALL_TESTS();
  const auto* unit = testing::UnitTest::GetInstance();
  if (rc == 0 && unit->successful_test_count() == 0 && unit->skipped_test_count() > 0) {
    std::printf("skipped: no test of this program could run here (reasons above)\n");
    return 77;
  }
  return rc;
}
