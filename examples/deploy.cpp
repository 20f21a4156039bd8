// Drive a robot from policy.safetensors and the contract in it, with MuJoCo alone: the loop of deploy.py in C++17.
//
//   legged-envs export Legged/Go2-Flat-v0 --folder go2
//   M=$(python -c "import mujoco; print(mujoco.__path__[0])")    # headers and library of pip's MuJoCo
//   c++ -O2 -std=c++17 examples/deploy.cpp -I "$M/include" "$M"/libmujoco.* -Wl,-rpath,"$M" -o deploy
//   ./deploy go2 0.8 0 0 [targets.csv]    vx, vy, m/s, and wz, rad/s, for 10 s; targets of all joints in every step
//
// A policy with gaits also takes gait=pace period=0.4 clearance=0.08 height=0.28 pitch=0, any of them.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <mujoco/mujoco.h>

using Numbers = std::vector<double>;
using Row = std::vector<float>;

// --- JSON ------------------------------------------------------------------------------------------------------------

struct Json {
  char kind = 'n';  // n: null, b: true or false, d: number, s: text, a: array, o: object
  double number = 0.0;
  std::string text;
  std::vector<std::string> keys;  // of the items of an object
  std::vector<Json> items;

  bool has(const std::string& key) const { return std::find(keys.begin(), keys.end(), key) != keys.end(); }
  const Json& operator[](const std::string& key) const {
    auto found = std::find(keys.begin(), keys.end(), key);
    if (found == keys.end()) throw std::runtime_error("there is no \"" + key + "\"");
    return items[found - keys.begin()];
  }
  Numbers numbers() const {
    Numbers result;
    for (const Json& item : items) result.push_back(item.number);
    return result;
  }
};

// An entry of an object; null if it is missing, or if `from` itself is null.
Json get_or_null(const Json& from, const std::string& key) { return from.has(key) ? from[key] : Json(); }

struct Parser {
  const char* at;

  char next() {
    while (*at && std::strchr(" \t\r\n", *at)) ++at;
    return *at;
  }
  std::string string() {
    std::string result;
    for (++at; *at && *at != '"'; ++at) {
      if (*at != '\\') {
        result += *at;
      } else if (*++at == 'u') {  // no name in a contract has such letters
        result += '?';
        at += 4;
      } else {
        result += *at == 'n' ? '\n' : *at == 't' ? '\t' : *at;
      }
    }
    ++at;
    return result;
  }
  Json value() {
    Json json;
    char first = next();
    if (first == '{' || first == '[') {
      json.kind = first == '{' ? 'o' : 'a';
      char last = first == '{' ? '}' : ']';
      for (++at; next() != last; next() == ',' ? ++at : at) {
        if (!*at) throw std::runtime_error("the JSON ends too early");
        if (json.kind == 'o') {
          json.keys.push_back(string());
          if (next() != ':') throw std::runtime_error("there is no : after \"" + json.keys.back() + "\"");
          ++at;
        }
        json.items.push_back(value());
      }
      ++at;
    } else if (first == '"') {
      json.kind = 's';
      json.text = string();
    } else if (std::strchr("tfn", first)) {
      json.kind = first == 'n' ? 'n' : 'b';
      json.number = first == 't';
      while (*at >= 'a' && *at <= 'z') ++at;
    } else {
      char* end;
      json.kind = 'd';
      json.number = std::strtod(at, &end);
      if (end == at) throw std::runtime_error(std::string("this is no JSON: ") + std::string(at).substr(0, 20));
      at = end;
    }
    return json;
  }
};

Json parse(const std::string& text) { return Parser{text.c_str()}.value(); }

// --- The network: the tensor operations that the file lists ----------------------------------------------------------

// A finite 16-bit float, the lowest byte first: 1 bit of sign, 5 of exponent, 10 of fraction.
float of_half(const char* from) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, from, 2);
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent ? std::ldexp(1024.0f + fraction, exponent - 25) : std::ldexp(1.0f * fraction, -24);
  return bits >> 15 ? -size : size;
}

struct Network {
  Json steps;
  std::string contract;
  std::vector<std::string> inputs, outputs;
  std::map<std::string, Row> weights;

  explicit Network(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    std::uint64_t size = 0;  // of the header, 8 bytes, the lowest first; JSON and numbers follow
    if (bytes.size() >= 8) std::memcpy(&size, bytes.data(), 8);
    if (size == 0 || size > bytes.size() - 8) throw std::runtime_error(path + " is no safetensors file");
    const Json header = parse(bytes.substr(8, size)), &about = header["__metadata__"];
    const Json network = parse(about["network"].text);
    contract = about["contract"].text;
    for (const Json& input : network["inputs"].items) inputs.push_back(input.text);
    for (const Json& output : network["outputs"].items) outputs.push_back(output.text);
    steps = network["steps"];
    for (std::size_t i = 0; i < header.keys.size(); ++i) {
      if (header.keys[i] == "__metadata__") continue;
      const std::string& type = header.items[i]["dtype"].text;
      if (type != "F32" && type != "F16") throw std::runtime_error(header.keys[i] + " is not of float32 or float16");
      const Numbers place = header.items[i]["data_offsets"].numbers();
      if (place.size() != 2 || place[0] < 0 || place[1] < place[0] || place[1] > bytes.size() - 8 - size)
        throw std::runtime_error(path + " is not whole: there is no " + header.keys[i]);
      const char* from = bytes.data() + 8 + size + static_cast<std::size_t>(place[0]);
      const std::size_t width = type == "F32" ? 4 : 2;
      Row& row = weights[header.keys[i]];
      row.resize((place[1] - place[0]) / width);
      if (width == 4) std::memcpy(row.data(), from, 4 * row.size());
      for (std::size_t j = 0; width == 2 && j < row.size(); ++j) row[j] = of_half(from + 2 * j);
    }
  }

  // The outputs for the inputs of one robot: observation and memory in, actions and memory out.
  std::vector<Row> operator()(const std::vector<Row>& arguments) const {
    std::map<std::string, Row> values;
    for (std::size_t i = 0; i < inputs.size(); ++i) values[inputs[i]] = arguments.at(i);
    std::map<std::string, std::size_t> parts;  // of a row that a step has cut: their number
    std::deque<Row> constants;
    const auto find = [&](const Json& argument) {
      if (argument.kind != 'o') {
        constants.emplace_back(1, static_cast<float>(argument.number));
        return static_cast<const Row*>(&constants.back());
      }
      const std::string& name = argument["of"].text;
      return static_cast<const Row*>(&(values.count(name) ? values : weights).at(name));
    };
    for (const Json& step : steps.items) {
      const std::string &name = step["name"].text, &operation = step["operation"].text;
      const std::vector<Json>& given = step["arguments"].items;
      if (operation == "chunk") parts[name] = static_cast<std::size_t>(given.at(1).number);
      if (operation == "cat") {
        for (const Json& part : given.at(0).items) {
          const Row* row = find(part);
          values[name].insert(values[name].end(), row->begin(), row->end());
        }
      } else if (operation == "getitem") {
        const std::string& source = given.at(0)["of"].text;
        values[name] = taken(values.at(source), given.at(1), parts.count(source) ? parts.at(source) : 1);
      } else {
        std::vector<const Row*> rows;
        for (const Json& argument : given) rows.push_back(find(argument));
        values[name] = apply(operation, name, rows);
      }
    }
    std::vector<Row> results;
    for (const std::string& output : outputs) results.push_back(values.at(output));
    return results;
  }

  // Part of a row: [:, from:to], or one of equal parts.
  static Row taken(const Row& row, const Json& index, std::size_t number) {
    const long size = static_cast<long>(row.size());
    long from = 0, to = size;
    if (index.kind == 'd') {
      from = static_cast<long>(index.number) * size / static_cast<long>(number);
      to = from + size / static_cast<long>(number);
    } else {
      const std::vector<Json>& bounds = index.items.at(1)["slice"].items;
      if (bounds.at(0).kind == 'd') from = static_cast<long>(bounds.at(0).number);
      if (bounds.at(1).kind == 'd') to = static_cast<long>(bounds.at(1).number);
      if (from < 0) from += size;
      if (to < 0) to += size;
    }
    if (from < 0 || to < from || to > size) throw std::runtime_error("the network takes numbers that are not there");
    return Row(row.begin() + from, row.begin() + to);
  }

  static Row apply(const std::string& operation, const std::string& name, const std::vector<const Row*>& rows) {
    const Row& x = *rows.at(0);
    const auto wrong = [&] { return std::runtime_error("the numbers of " + name + " do not fit"); };
    if (operation == "unflatten" || operation == "flatten") return x;  // a row has no other shape
    if (operation == "linear") {
      const Row& weight = *rows.at(1);
      Row result = *rows.at(2);
      if (weight.size() != result.size() * x.size()) throw wrong();
      for (std::size_t i = 0; i < result.size(); ++i)
        for (std::size_t j = 0; j < x.size(); ++j) result[i] += weight[i * x.size() + j] * x[j];
      return result;
    }
    if (operation == "sum") {
      float total = 0.0f;
      for (const float number : x) total += number;
      return Row(1, total);
    }
    if (operation == "add" || operation == "sub" || operation == "mul" || operation == "truediv") {
      const Row& y = *rows.at(1);  // of one number, or of a frame of the past: the same for all
      if (x.empty() || y.empty()) throw wrong();
      const std::size_t size = std::max(x.size(), y.size());
      if (size % x.size() || size % y.size()) throw wrong();
      Row result(size);
      for (std::size_t i = 0; i < size; ++i) {
        const float a = x[i % x.size()], b = y[i % y.size()];
        result[i] = operation == "add" ? a + b : operation == "sub" ? a - b : operation == "mul" ? a * b : a / b;
      }
      return result;
    }
    Row result = x;
    for (float& number : result) {
      if (operation == "elu") number = number > 0.0f ? number : std::expm1(number);
      else if (operation == "relu") number = std::max(number, 0.0f);
      else if (operation == "tanh") number = std::tanh(number);
      else if (operation == "sigmoid") number = 1.0f / (1.0f + std::exp(-number));
      else if (operation == "square") number *= number;
      else if (operation == "sqrt") number = std::sqrt(number);
      else if (operation != "chunk") throw std::runtime_error("this network has the operation " + operation + ", add it here");
    }
    return result;
  }
};

// --- From a command and what a robot measures to the targets of its joints -------------------------------------------

// A number within a pair of bounds, where there are such.
double clipped(double number, const Json& bounds) {
  const Json &low = bounds.items.at(0), &high = bounds.items.at(1);
  if (low.kind == 'd') number = std::max(number, low.number);
  return high.kind == 'd' ? std::min(number, high.number) : number;
}

struct Measured {
  Numbers quat, ang_vel, joint_pos, joint_vel;  // of the base (w, x, y, z), and in its frame, rad/s; rad, rad/s
  Numbers scan;                                 // how far the ground is below the base, m; empty without a scan
};

double finite(const std::string& word) {
  std::size_t end = 0;
  double number = NAN;
  try {
    number = std::stod(word, &end);
  } catch (const std::logic_error&) {
  }
  if (end != word.size() || !std::isfinite(number)) throw std::runtime_error(word + " is no finite number");
  return number;
}

std::string joined(const std::vector<std::string>& words) {
  std::string result;
  for (const std::string& word : words) result += (result.empty() ? "" : ", ") + word;
  return result;
}

const std::set<std::string> KNOWN = {"command", "gravity", "ang_vel", "joint_pos", "joint_vel", "action", "clock",
                                     "height_scan"};
const std::set<std::string> KNOWN_WITH_GAITS = {"gait", "gait_style", "clock_sin", "clock_cos"};

// The gait and its style, for a policy that changes its gait while it walks: the contract's entry "gait_command".
struct Gait {
  Json choice;  // no object: the policy has no gaits
  std::vector<std::string> names = {"period", "clearance", "height", "pitch"};  // of the style, in this order
  Numbers style;
  std::string gait;
  double stride = 0.0;  // time, in strides

  void read(const Json& about) {
    choice = about;
    gait = choice["gaits"].keys.at(0);
    for (const std::string& name : names) {
      const Numbers range = choice[name].numbers();
      style.push_back((range.at(0) + range.at(1)) / 2.0);
    }
  }
  void set(const std::string& name, const std::string& value) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (choice.kind != 'o') throw std::runtime_error("the policy has no " + name + ", only a velocity");
    if (name == "gait") {
      if (!choice["gaits"].has(value))
        throw std::runtime_error("gait must be within " + joined(choice["gaits"].keys) + ", got " + value);
      gait = value;
      return;
    }
    if (found == names.end())
      throw std::runtime_error("the policy has no " + name + ", only " + joined(names) + ", gait");
    const Numbers range = choice[name].numbers();
    const double number = finite(value);
    if (number < range[0] || number > range[1])
      throw std::runtime_error(name + " must be within " + std::to_string(range[0]) + ", " + std::to_string(range[1]) +
                               ", got " + value);
    style[found - names.begin()] = number;
  }
  // Which feet swing together, how, and the time of each foot, which goes on by dt seconds.
  void observe(const Numbers& command, double dt, std::map<std::string, Numbers>& now) {
    const Numbers offsets = choice["gaits"][gait].numbers();
    const double moves = std::hypot(command[0], command[1], command[2]) > choice["still"].number ? 1.0 : 0.0;
    for (const char* name : {"gait", "clock_sin", "clock_cos"}) now[name].clear();
    for (double offset : offsets) now["gait"].push_back(std::cos(2 * mjPI * offset));
    now["gait_style"] = style;
    for (const Json& row : choice["phase_offsets"].items) {
      double turns = stride;
      for (std::size_t i = 0; i < offsets.size(); ++i) turns += row.items.at(i).number * offsets[i];
      now["clock_sin"].push_back(moves * std::sin(2 * mjPI * turns));
      now["clock_cos"].push_back(moves * std::cos(2 * mjPI * turns));
    }
    stride += dt / style[0];
  }
};

struct Controller {
  Network network;
  Json about;
  Numbers fallback, scale, rest, action;
  std::vector<std::size_t> driven;  // the joint of each action
  std::vector<Row> memory;          // of the network; an episode begins with zeros
  Gait gait;
  std::vector<Json> command_ranges;  // of the training, for each component of the command; null if unknown
  double time = 0.0;
  std::size_t kept = 1;
  std::deque<std::map<std::string, Numbers>> past;  // the newest first

  explicit Controller(const std::string& path) : network(path), about(parse(network.contract)) {
    fallback = about["default_joint_pos"].numbers();
    scale = about["action_scale"].numbers();
    action.assign(scale.size(), 0.0);
    for (std::size_t i = 0; i < fallback.size(); ++i)
      rest.push_back(about["actuators"].items.at(i).text == "position" ? fallback[i] : 0.0);
    const std::vector<Json>& names = about["joint_names"].items;
    for (const Json& joint : about["action_joints"].items) {
      const auto same = [&](const Json& name) { return name.text == joint.text; };
      driven.push_back(std::find_if(names.begin(), names.end(), same) - names.begin());
      if (driven.back() >= fallback.size()) throw std::runtime_error("there is no joint " + joint.text);
    }
    if (driven.size() != scale.size() || about["target_clip"].items.size() != scale.size())
      throw std::runtime_error("action_joints, action_scale and target_clip differ in size");
    const Json trained = get_or_null(get_or_null(about, "training"), "commands");
    for (const char* name : {"lin_vel_x", "lin_vel_y", "ang_vel_z"}) {
      command_ranges.push_back(get_or_null(trained, name));
    }
    if (about.has("gait_command")) gait.read(about["gait_command"]);
    if (about.has("memory"))
      for (const Json& size : about["memory"].items) memory.emplace_back(static_cast<std::size_t>(size.number), 0.0f);
    for (const Json& term : about["observation"].items)
      if (term.has("steps_ago")) kept = std::max(kept, 1 + static_cast<std::size_t>(term["steps_ago"].number));
    for (const Json& terms : about["inputs"].items)
      for (const Json& term : terms.items)
        if (term.has("own") || !(KNOWN.count(term["name"].text) ||
                                 (gait.choice.kind == 'o' && KNOWN_WITH_GAITS.count(term["name"].text))))
          throw std::runtime_error("this loop cannot observe " + term["name"].text);
    if (about["inputs"].items.size() != 1) throw std::runtime_error("this loop makes one observation, not several");
  }

  // Clips a command to the range of the training, widened to 0; beyond it, the robot may fall.
  Numbers limit_command(Numbers command) const {
    for (std::size_t i = 0; i < command.size(); ++i) {
      if (command_ranges[i].kind != 'a') continue;  // no array: the range is unknown
      const Json &least = command_ranges[i].items.at(0), &most = command_ranges[i].items.at(1);
      if (least.kind == 'd') command[i] = std::max(command[i], std::min(least.number, 0.0));
      if (most.kind == 'd') command[i] = std::min(command[i], std::max(most.number, 0.0));
    }
    return command;
  }

  Numbers operator()(const Numbers& asked, const Measured& robot) {
    const Numbers command = limit_command(asked);
    const double w = robot.quat[0], x = robot.quat[1], y = robot.quat[2], z = robot.quat[3];
    const double stride = about.has("gait") ? time / about["gait"]["period"].number : 0.0;
    std::map<std::string, Numbers> now;
    now["command"] = command;
    now["gravity"] = {2 * (w * y - x * z), -2 * (y * z + w * x), 2 * (x * x + y * y) - 1};
    now["ang_vel"] = robot.ang_vel;
    now["joint_vel"] = robot.joint_vel;
    now["action"] = action;
    now["joint_pos"] = robot.joint_pos;
    for (std::size_t i = 0; i < fallback.size(); ++i) now["joint_pos"][i] -= fallback[i];
    now["height_scan"] = robot.scan;
    now["clock"] = {std::sin(2 * mjPI * stride), std::cos(2 * mjPI * stride)};
    if (gait.choice.kind == 'o') gait.observe(command, about["control_dt"].number, now);
    past.push_front(now);
    if (past.size() > kept) past.pop_back();

    Row observation;
    const double bound = about["observation_limit"].number;
    for (const Json& term : about["observation"].items) {
      const std::string& name = term["name"].text;
      const std::size_t age = term.has("steps_ago") ? static_cast<std::size_t>(term["steps_ago"].number) : 0;
      const Json &clip = term["clip"], &factor = term["scale"];
      const Numbers& value = past[std::min(age, past.size() - 1)].at(name);
      if (value.size() != term["size"].number) throw std::runtime_error("this loop cannot observe such a " + name);
      for (std::size_t i = 0; i < value.size(); ++i) {
        const double number = clip.kind == 'a' ? clipped(value[i], clip) : value[i];
        const double scaled = number * (factor.kind == 'a' ? factor.items.at(i).number : factor.number);
        observation.push_back(std::clamp(scaled, -bound, bound));
      }
    }

    std::vector<Row> arguments{observation};
    arguments.insert(arguments.end(), memory.begin(), memory.end());
    const std::vector<Row> results = network(arguments);
    memory.assign(results.begin() + 1, results.end());
    const Row& output = results[0];
    if (output.size() != action.size()) throw std::runtime_error("the network gives another number of actions");
    Numbers target = rest;
    time += about["control_dt"].number;
    if (about.has("gait")) {  // the feet that swing are lifted
      const Json& gait = about["gait"];
      const double stance = gait["stance"].number;
      for (std::size_t foot = 0; foot < gait["swing"].items.size(); ++foot) {
        const double turns = stride + gait["offsets"].items[foot].number, phase = turns - std::floor(turns);
        const double lift = std::pow(std::sin(mjPI * std::max(phase - stance, 0.0) / (1.0 - stance)), 2);
        for (std::size_t i = 0; i < target.size(); ++i)
          target[i] += lift * gait["swing"].items[foot][about["joint_names"].items[i].text].number;
      }
    }
    const double limit = about["action_limit"].number;
    for (std::size_t i = 0; i < action.size(); ++i) {
      double& joint = target[driven[i]];
      action[i] = std::clamp(static_cast<double>(output[i]), -limit, limit);
      joint = clipped(joint + scale[i] * action[i], about["target_clip"].items[i]);
    }
    return target;
  }
};

// --- Heights at points of the world, as the contract's entry "scan" says. A real robot has a map of them --------------

struct Ground {
  double low_x = 0.0, low_y = 0.0, cell = 1.0;
  int cells_x = 1, cells_y = 1;
  Numbers heights = Numbers(4, 0.0);  // a plane; else of all points, those of one x together

  void read(const mjModel* model) {
    for (int geom = 0; geom < model->ngeom && model->nhfield; ++geom) {
      if (model->geom_type[geom] != mjGEOM_HFIELD) continue;
      const int rows = model->hfield_nrow[0], columns = model->hfield_ncol[0];  // along y, along x
      const mjtNum *size = model->hfield_size, *place = model->geom_pos + 3 * geom;
      low_x = place[0] - size[0];
      low_y = place[1] - size[1];
      cells_x = columns - 1;
      cells_y = rows - 1;
      cell = 2.0 * size[0] / cells_x;
      heights.assign(static_cast<std::size_t>(rows) * columns, 0.0);
      for (int i = 0; i < columns; ++i)
        for (int j = 0; j < rows; ++j)
          heights[static_cast<std::size_t>(i) * rows + j] = place[2] + size[2] * model->hfield_data[j * columns + i];
    }
  }
  double at(int i, int j) const { return heights[static_cast<std::size_t>(i) * (cells_y + 1) + j]; }
  double operator()(double x, double y, const std::string& lookup) const {
    const double along_x = std::clamp((x - low_x) / cell, 0.0, 1.0 * cells_x);
    const double along_y = std::clamp((y - low_y) / cell, 0.0, 1.0 * cells_y);
    const int i = std::min(static_cast<int>(along_x), cells_x - 1), j = std::min(static_cast<int>(along_y), cells_y - 1);
    const double u = along_x - i, v = along_y - j;
    const double h00 = at(i, j), h10 = at(i + 1, j), h01 = at(i, j + 1), h11 = at(i + 1, j + 1);
    if (lookup == "lowest") return std::min({h00, h10, h01});  // of three corners
    if (lookup == "bilinear") return (1 - v) * ((1 - u) * h00 + u * h10) + v * ((1 - u) * h01 + u * h11);
    if (lookup != "height") throw std::runtime_error("this loop knows no lookup " + lookup);
    return u >= v ? h00 + u * (h10 - h00) + v * (h11 - h10) : h00 + u * (h11 - h01) + v * (h01 - h00);
  }
};

// --- The robot in MuJoCo. A real one's read() asks sensors, its write() sends targets, gains and limits to its motors 

struct Robot {
  mjModel* model;
  mjData* data;
  std::vector<int> motors, positions, velocities;
  int steps;
  Ground ground;
  Json look;  // the contract's entry "scan"

  Robot(const std::string& path, const Json& about) {
    char error[1000] = "";
    model = mj_loadXML(path.c_str(), nullptr, error, sizeof error);
    if (!model) throw std::runtime_error(error);
    data = mj_makeData(model);
    mj_resetDataKeyframe(model, data, 0);
    for (const Json& each : about["joint_names"].items) {
      const std::string& name = each.text;
      const int joint = mj_name2id(model, mjOBJ_JOINT, name.c_str());
      const int motor = mj_name2id(model, mjOBJ_ACTUATOR, name.c_str());
      if (joint < 0 || motor < 0) throw std::runtime_error(path + " has no joint and actuator " + name);
      motors.push_back(motor);
      positions.push_back(model->jnt_qposadr[joint]);
      velocities.push_back(model->jnt_dofadr[joint]);
    }
    steps = static_cast<int>(std::lround(about["control_dt"].number / model->opt.timestep));
    ground.read(model);
    if (about.has("scan")) look = about["scan"];
  }
  ~Robot() {
    mj_deleteData(data);
    mj_deleteModel(model);
  }

  Measured read() const {
    Measured seen{{data->qpos + 3, data->qpos + 7}, {data->qvel + 3, data->qvel + 6}, {}, {}, scan()};
    for (int i : positions) seen.joint_pos.push_back(data->qpos[i]);
    for (int i : velocities) seen.joint_vel.push_back(data->qvel[i]);
    return seen;
  }
  Numbers scan() const {  // at a grid that turns with the heading, points of one x together
    Numbers below;
    if (look.kind != 'o') return below;
    const mjtNum* p = data->qpos;
    const double w = p[3], x = p[4], y = p[5], z = p[6];
    const double yaw = std::atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z));
    const double limit = look["limit"].number;
    for (double ahead : look["x"].numbers())
      for (double left : look["y"].numbers()) {
        const double at_x = p[0] + std::cos(yaw) * ahead - std::sin(yaw) * left;
        const double at_y = p[1] + std::sin(yaw) * ahead + std::cos(yaw) * left;
        const double height = p[2] - ground(at_x, at_y, look["lookup"].text) - look["offset"].number;
        below.push_back(std::clamp(height, -limit, limit));
      }
    return below;
  }
  void write(const Numbers& target) {
    for (std::size_t i = 0; i < target.size(); ++i) data->ctrl[motors[i]] = target[i];
    for (int i = 0; i < steps; ++i) mj_step(model, data);
  }
};

int main(int count, char** given) {
  std::vector<std::string> words, style;
  for (int i = 1; i < count; ++i) {
    const bool is_style = i > 1 && std::strchr(given[i], '=');
    (is_style ? style : words).push_back(given[i]);
  }
  if (words.size() < 4) {
    std::fprintf(stderr, "usage: %s FOLDER VX VY WZ [TARGETS.csv] [gait=NAME] [period=S] ...\n", given[0]);
    return 2;
  }
  try {
    const std::string folder = words[0];
    const Numbers command = {finite(words[1]), finite(words[2]), finite(words[3])};
    Controller controller(folder + "/policy.safetensors");
    for (const std::string& word : style) {
      const std::size_t equals = word.find('=');
      controller.gait.set(word.substr(0, equals), word.substr(equals + 1));
    }
    const Numbers limited = controller.limit_command(command);
    if (limited != command)
      std::printf("limited to the commands of the training: %g %g %g\n", limited[0], limited[1], limited[2]);
    Robot robot(folder + "/scene.xml", controller.about);
    // No real robot stands exactly symmetric. If it did, a policy that treats left and right equally would move both
    // front feet at once, and could fall.
    robot.data->qpos[robot.positions[0]] += 0.01;  // rad
    std::ofstream table;
    if (words.size() > 4) table.open(words[4]);
    if (!table) throw std::runtime_error(words[4] + " cannot be written");
    table.precision(17);
    while (controller.time < 10.0) {
      const Numbers target = controller(command, robot.read());
      for (std::size_t i = 0; i < target.size(); ++i) table << target[i] << (i + 1 < target.size() ? "," : "\n");
      robot.write(target);
    }
    const mjtNum* p = robot.data->qpos;
    std::printf("after %.1f s at x = %.2f m, y = %.2f m, height %.2f m\n", controller.time, p[0], p[1], p[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
