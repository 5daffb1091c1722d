package bench;

import java.util.Arrays;

/** Durations in nanoseconds, noted by one thread. */
final class Times {
    private long[] values = new long[1024];
    private int size;

    void add(long nanos) {
        if (size == values.length) {
            values = Arrays.copyOf(values, 2 * size);
        }
        values[size++] = nanos;
    }

    int count() {
        return size;
    }

    /** Returns the durations of all, sorted. */
    static long[] sorted(Times... all) {
        int n = Arrays.stream(all).mapToInt(each -> each.size).sum();
        long[] sorted = new long[n];
        int at = 0;
        for (Times each : all) {
            System.arraycopy(each.values, 0, sorted, at, each.size);
            at += each.size;
        }
        Arrays.sort(sorted);
        return sorted;
    }

    static long quantile(long[] sorted, double q) {
        if (sorted.length == 0) {
            return 0;
        }
        return sorted[Math.min((int) (q * sorted.length), sorted.length - 1)];
    }
}
