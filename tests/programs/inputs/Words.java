import java.nio.file.*;
import java.util.*;
import java.util.concurrent.*;

/** Java: its compiler at start-up, maps, threads, files, an exception. */
public class Words {
    public static void main(String[] arguments) throws Exception {
        Map<String, Integer> words = new TreeMap<>();
        for (String word : Files.readString(Path.of("page.md")).split("\\W+")) {
            words.merge(word, 1, Integer::sum);
        }
        System.out.println(words);
        ExecutorService pool = Executors.newFixedThreadPool(3);
        List<Future<Long>> sums = new ArrayList<>();
        for (int part = 0; part < 6; part++) {
            final long from = part * 1000L;
            sums.add(pool.submit(() -> {
                long sum = 0;
                for (long i = from; i < from + 1000; i++) sum += i * i;
                return sum;
            }));
        }
        long total = 0;
        for (Future<Long> sum : sums) total += sum.get();
        pool.shutdown();
        System.out.println(total);
        Files.writeString(Path.of("java.out"), "x".repeat(3000));
        try {
            Files.readString(Path.of("missing"));
        } catch (NoSuchFileException missing) {
            System.err.println(missing.getMessage());
        }
        System.exit(5);
    }
}
