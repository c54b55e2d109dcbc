import java.util.function.LongSupplier;
import site.ycsb.Utils;
import site.ycsb.generator.AcknowledgedCounterGenerator;
import site.ycsb.generator.ExponentialGenerator;
import site.ycsb.generator.HistogramGenerator;
import site.ycsb.generator.HotspotIntegerGenerator;
import site.ycsb.generator.ScrambledZipfianGenerator;
import site.ycsb.generator.SkewedLatestGenerator;
import site.ycsb.generator.UniformLongGenerator;
import site.ycsb.generator.ZipfianGenerator;

/** How often YCSB's own generators give each number below 100, and its hashes of some numbers, as lines name,number,count. */
public final class Samples {
  private static final int DRAWS = 200_000;

  public static void main(String[] arguments) {
    AcknowledgedCounterGenerator inserted = new AcknowledgedCounterGenerator(100);
    SkewedLatestGenerator latest = new SkewedLatestGenerator(inserted);
    count("uniform", new UniformLongGenerator(0, 99)::nextValue);
    count("scrambled", new ScrambledZipfianGenerator(0, 99)::nextValue);
    count("latest", latest::nextValue);
    count("hotspot", new HotspotIntegerGenerator(0, 99, 0.2, 0.8)::nextValue);
    ExponentialGenerator exponential = new ExponentialGenerator(95, 85.71428571);
    count("exponential", () -> 99 - exponential.nextValue().intValue());
    count("zipfian", new ZipfianGenerator(1, 90)::nextValue);
    count("histogram", new HistogramGenerator(new long[] {3, 5, 0, 7, 1}, 10)::nextValue);
    for (long number : new long[] {0, 1, 2, 99, 1_000_000, 2_147_483_647L, 2_147_483_648L, 9_000_000_000L}) {
      System.out.println("hash," + number + "," + Utils.hash(number));
    }
  }

  private static void count(String name, LongSupplier generator) {
    long[] counts = new long[100];
    for (int draws = 0; draws < DRAWS;) {
      long number = generator.getAsLong();
      if (number >= 0 && number < counts.length) {
        counts[(int) number]++;
        draws++;
      }
    }
    for (int number = 0; number < counts.length; number++) {
      System.out.println(name + "," + number + "," + counts[number]);
    }
  }
}
