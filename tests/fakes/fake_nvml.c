/* A libnvidia-ml.so.1 that is driven by a file: enough of NVML for the real pynvml to read GPU memory.
 *
 * Build:  cc -shared -fPIC -o DIR/libnvidia-ml.so.1 fake_nvml.c      (-DNO_V2: a driver without memory information of version 2)
 * Run:    LD_LIBRARY_PATH=DIR FAKE_NVML_FILE=FILE voxgate serve
 * Drive:  write FILE.new and rename it to FILE, at any time; FILE is read anew at every call. fake_nvml.py does all three.
 *
 * A line "init CODE" makes nvmlInit fail with that code of nvml.h. Each other line is a device:
 *     UUID total_bytes reserved_bytes free_bytes code [word]
 * code: what reading its memory answers; 0 is success. 15 (GPU is lost) lasts, as it does in a real driver, until NVML is
 *     shut down and initialized again; so does the loss of a device whose line has gone.
 * word: "shut" not even a handle is given, the code says why; "mismatch" version 2 is refused for its version; "v1" it is
 *     not supported; "hang" memory is not answered for as long as this line says so.
 * Lines of UUIDs "MIG-..." that follow one another are the instances of one split device, whose own memory is not shown.
 * Layouts are those of nvml.h: in version 1 `used` includes what is reserved, in version 2 it does not.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef unsigned long long u64;
typedef struct { char uuid[80], word[16]; u64 total, reserved, free; int code; } row_t;
typedef struct { row_t rows[16]; int count, init; } machine_t;
typedef struct device { char uuid[80]; int split, lost; } *device_t; /* split: the whole whose first instance has this UUID */
typedef struct { u64 total, free, used; } memory_v1;
typedef struct { unsigned version; u64 total, reserved, free, used; } memory_v2;

enum { MOST = 16, FIRST_INSTANCE = 2 }; /* instances have indices with a gap */
enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, LOST = 15, MISMATCH = 25, UNKNOWN = 999 };

static struct device handles[2 * MOST];
static int handle_count, users;

static int read_machine(machine_t *machine) {
  const char *path = getenv("FAKE_NVML_FILE");
  FILE *file = path ? fopen(path, "r") : NULL;
  char line[256];
  if (!file) return UNKNOWN;
  memset(machine, 0, sizeof *machine);
  while (machine->count < MOST && fgets(line, sizeof line, file)) {
    row_t row = {0};
    if (sscanf(line, "init %d", &machine->init) == 1) continue;
    if (sscanf(line, "%79s %llu %llu %llu %d %15s", row.uuid, &row.total, &row.reserved, &row.free, &row.code, row.word) >= 5)
      machine->rows[machine->count++] = row;
  }
  fclose(file);
  return SUCCESS;
}

static int is_mig(const row_t *row) { return !strncmp(row->uuid, "MIG-", 4); }

/* The row a device begins with: every one but those of further instances. */
static const row_t *nth_device(const machine_t *machine, int n) {
  for (int i = 0; i < machine->count; i++)
    if (!(i && is_mig(&machine->rows[i]) && is_mig(&machine->rows[i - 1])) && !n--) return &machine->rows[i];
  return NULL;
}

static device_t handle_of(const row_t *row, int split) {
  for (int i = 0; i < handle_count; i++)
    if (!strcmp(handles[i].uuid, row->uuid) && handles[i].split == split) return &handles[i];
  if (handle_count == 2 * MOST) abort();
  strcpy(handles[handle_count].uuid, row->uuid);
  handles[handle_count].split = split;
  return &handles[handle_count++];
}

/* The machine as it stands and the row of a device in it. */
static int look_up(device_t device, machine_t *machine, const row_t **row) {
  int code = users ? read_machine(machine) : UNINITIALIZED;
  if (code) return code;
  for (int i = 0; i < machine->count && !device->lost; i++)
    if (!strcmp(machine->rows[i].uuid, device->uuid)) return *row = &machine->rows[i], SUCCESS;
  device->lost = 1;
  return LOST;
}

int nvmlInitWithFlags(unsigned flags) { /* the one that pynvml.nvmlInit() calls */
  machine_t machine;
  int code = read_machine(&machine);
  (void)flags;
  if (code || machine.init) return code ? code : machine.init;
  if (!users++) handle_count = 0, memset(handles, 0, sizeof handles);
  return SUCCESS;
}
int nvmlShutdown(void) { return users ? (users--, SUCCESS) : UNINITIALIZED; }
const char *nvmlErrorString(int code) { static char text[32]; snprintf(text, sizeof text, "fake error %d", code); return text; }

int nvmlDeviceGetCount_v2(unsigned *count) {
  machine_t machine;
  int code = users ? read_machine(&machine) : UNINITIALIZED;
  if (!code) for (*count = 0; nth_device(&machine, *count);) ++*count;
  return code;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, device_t *device) {
  machine_t machine;
  int code = users ? read_machine(&machine) : UNINITIALIZED;
  const row_t *row = code ? NULL : nth_device(&machine, index);
  if (!row) return code ? code : INVALID;
  if (!strcmp(row->word, "shut")) return row->code;
  *device = handle_of(row, is_mig(row));
  return SUCCESS;
}
int nvmlDeviceGetUUID(device_t device, char *text, unsigned length) {
  snprintf(text, length, "%s%s", device->split ? "GPU-of-" : "", device->uuid);
  return users ? SUCCESS : UNINITIALIZED;
}
int nvmlDeviceGetName(device_t device, char *text, unsigned length) {
  snprintf(text, length, "Fake %s", device->uuid);
  return users ? SUCCESS : UNINITIALIZED;
}

int nvmlDeviceGetMigMode(device_t device, unsigned *current, unsigned *pending) {
  *current = *pending = 1;
  return device->split ? SUCCESS : NOT_SUPPORTED;
}
int nvmlDeviceGetMaxMigDeviceCount(device_t device, unsigned *count) { *count = device->split ? 7 : 0; return SUCCESS; }
int nvmlDeviceGetMigDeviceHandleByIndex(device_t device, unsigned index, device_t *instance) {
  machine_t machine;
  const row_t *row;
  int code = look_up(device, &machine, &row);
  if (code) return code;
  if (index < FIRST_INSTANCE) return NOT_FOUND;
  for (index -= FIRST_INSTANCE; index; index--)
    if (++row == machine.rows + machine.count || !is_mig(row)) return NOT_FOUND;
  *instance = handle_of(row, 0);
  return SUCCESS;
}

static int memory_of(device_t device, int version, row_t *out) {
  machine_t machine;
  const row_t *row;
  int code;
  while (!(code = look_up(device, &machine, &row)) && !strcmp(row->word, "hang")) usleep(1000);
  if (code) return code;
  if (device->split) return NO_PERMISSION;
  if (version == 2 && !strcmp(row->word, "mismatch")) return MISMATCH;
  if (version == 2 && !strcmp(row->word, "v1")) return NOT_SUPPORTED;
  device->lost |= row->code == LOST;
  *out = *row;
  return row->code;
}
int nvmlDeviceGetMemoryInfo(device_t device, memory_v1 *memory) {
  row_t row;
  int code = memory_of(device, 1, &row);
  if (!code) memory->total = row.total, memory->free = row.free, memory->used = row.total - row.free;
  return code;
}
#ifndef NO_V2
int nvmlDeviceGetMemoryInfo_v2(device_t device, memory_v2 *memory) {
  row_t row;
  int code = memory->version == (sizeof *memory | (2u << 24)) ? memory_of(device, 2, &row) : MISMATCH;
  if (!code) {
    memory->total = row.total, memory->reserved = row.reserved, memory->free = row.free;
    memory->used = row.total - row.reserved - row.free;
  }
  return code;
}
#endif
