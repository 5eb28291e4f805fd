import fc from "fast-check";

// Property tests use the same inputs in every run of `cargo xtask test`, which prints the seed.
const seed = Number.parseInt(process.env.PROPTEST_RNG_SEED ?? "", 10);
if (Number.isSafeInteger(seed)) {
  fc.configureGlobal({ seed: seed | 0 });
}
