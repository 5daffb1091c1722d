package interop;

import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** Two of three locks. */
final class Pair implements Contender {
    private final RedissonClient client;
    private final String name;
    private final Diary diary;

    Pair(RedissonClient client, String name, Diary diary) {
        this.client = client;
        this.name = name;
        this.diary = diary;
    }

    @Override
    public boolean pass() {
        int without = ThreadLocalRandom.current().nextInt(3);
        List<String> names = List.of(name + (without == 0 ? 1 : 0), name + (without == 2 ? 1 : 2));
        RLock lock = Locks.all(client, names);
        long start = Clock.nanos();
        lock.lock();
        long from = Clock.nanos();
        diary.waited(from - start);
        names.forEach(each -> new Counter(client, each).count());
        long to = Clock.nanos();
        names.forEach(each -> diary.stay(each, from, to, ALONE, 0));
        lock.unlock();
        return true;
    }
}
