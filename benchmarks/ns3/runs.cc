// Runs of the simulator's descriptions in ns-3 3.37 (Debian's libns3-dev), for comparison: TCP and early-bound MSTCP from sources of a
// constant rate over point-to-point links, with the simulator's own draws of streams and of losses.
//
// Reads a run as lines of words on standard input (benchmarks/ns3/descriptions.py writes them), prints a line of figures for each stream and
// flow, and with a file as argument writes there what every queue was given. Times in that file are nanoseconds.

#include <cstdint>
#include <deque>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "ns3/core-module.h"
#include "ns3/error-model.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

using namespace ns3;

namespace {

// Steele, Lea, Flood 2014; the generator of mstcp_proto::rng.
class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  double NextUnit() { return static_cast<double>(Next() >> 11) / 9007199254740992.0; }

 private:
  uint64_t state_;
};

// Losses on the wire as netsim::random::Chance draws them.
class DrawnLoss : public ErrorModel {
 public:
  DrawnLoss(double probability, uint64_t seed)
      : threshold_(static_cast<uint64_t>(probability * 9223372036854775808.0)), draws_(seed) {}

 private:
  bool DoCorrupt(Ptr<Packet>) override { return draws_.Next() >> 1 < threshold_; }
  void DoReset() override {}
  uint64_t threshold_;
  SplitMix64 draws_;
};

std::ofstream trace;

// Of each stream, by its port at the source: what its packets met.
struct Counts {
  uint64_t data = 0, again = 0, dropped = 0, recoveries = 0, timeouts = 0;
  uint32_t beyond = 0;
};
std::map<uint16_t, Counts> counts;

const uint16_t kSinkPort = 5001;

// What a queue of link `name` was given.
void OnQueued(std::string name, bool first, std::string fate, Ptr<const Packet> given) {
  Ptr<Packet> packet = given->Copy();
  const uint32_t bytes = packet->GetSize();
  PppHeader ppp;
  Ipv4Header ip;
  TcpHeader tcp;
  packet->RemoveHeader(ppp);
  packet->RemoveHeader(ip);
  packet->RemoveHeader(tcp);
  const bool forward = tcp.GetDestinationPort() == kSinkPort;
  const uint16_t port = forward ? tcp.GetSourcePort() : tcp.GetDestinationPort();
  const uint32_t sequence = tcp.GetSequenceNumber().GetValue();
  Counts& stream = counts[port];
  if (forward && packet->GetSize() > 0) {
    if (first) {
      stream.data += 1;
      stream.again += sequence < stream.beyond;
      stream.beyond = std::max(stream.beyond, sequence + packet->GetSize());
    }
    stream.dropped += fate != "queued";
  }
  if (trace.is_open()) {
    trace << Simulator::Now().GetNanoSeconds() << ' ' << name << ' ' << port << ' ' << (forward ? "forward" : "back") << ' '
          << sequence << ' ' << packet->GetSize() << ' ' << bytes << ' ' << tcp.GetAckNumber().GetValue() << ' ' << fate << '\n';
  }
}

void OnLost(std::string name, Ptr<const Packet> packet) { OnQueued(name, false, "lost", packet); }

void OnState(uint16_t port, TcpSocketState::TcpCongState_t before, TcpSocketState::TcpCongState_t after) {
  counts[port].recoveries += after == TcpSocketState::CA_RECOVERY;
  counts[port].timeouts += after == TcpSocketState::CA_LOSS;
  if (trace.is_open())
    trace << Simulator::Now().GetNanoSeconds() << " state " << port << ' ' << before << ' ' << after << '\n';
}

void OnWindow(const char* what, uint16_t port, uint32_t, uint32_t after) {
  if (trace.is_open()) trace << Simulator::Now().GetNanoSeconds() << ' ' << what << ' ' << port << ' ' << after << '\n';
}

// Routes by destination alone, each with the source address of what begins here: a stream has addresses of its own at both ends.
class Pinned : public Ipv4RoutingProtocol {
 public:
  void Add(Ipv4Address to, uint32_t interface, Ipv4Address source) { routes_[to] = {interface, source}; }

  Ptr<Ipv4Route> RouteOutput(Ptr<Packet>, const Ipv4Header& header, Ptr<NetDevice>, Socket::SocketErrno& error) override {
    error = Socket::ERROR_NOTERROR;
    return Route(header.GetDestination());
  }

  bool RouteInput(Ptr<const Packet> packet, const Ipv4Header& header, Ptr<const NetDevice> device, UnicastForwardCallback forward,
                  MulticastForwardCallback, LocalDeliverCallback deliver, ErrorCallback) override {
    const uint32_t interface = ip_->GetInterfaceForDevice(device);
    if (ip_->IsDestinationAddress(header.GetDestination(), interface))
      deliver(packet, header, interface);
    else
      forward(Route(header.GetDestination()), packet, header);
    return true;
  }

  void SetIpv4(Ptr<Ipv4> ip) override { ip_ = ip; }
  void NotifyInterfaceUp(uint32_t) override {}
  void NotifyInterfaceDown(uint32_t) override {}
  void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override {}
  void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override {}
  void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override {}

 private:
  struct Entry {
    uint32_t interface;
    Ipv4Address source;
  };

  Ptr<Ipv4Route> Route(Ipv4Address to) const {
    const Entry& entry = routes_.at(to);
    auto route = Create<Ipv4Route>();
    route->SetDestination(to);
    route->SetSource(entry.source);
    route->SetGateway(Ipv4Address::GetAny());
    route->SetOutputDevice(ip_->GetNetDevice(entry.interface));
    return route;
  }

  Ptr<Ipv4> ip_;
  std::map<Ipv4Address, Entry> routes_;
};

// The network: nodes by name, and how a node reaches a neighbour.
class Network {
 public:
  Ptr<Node> At(const std::string& name) {
    auto& node = nodes_[name];
    if (!node) {
      node = CreateObject<Node>();
      InternetStackHelper stack;
      stack.SetIpv6StackInstall(false);
      stack.Install(node);
      node->GetObject<Ipv4>()->SetRoutingProtocol(CreateObject<Pinned>());
    }
    return node;
  }

  void Join(std::istream& words) {
    std::string a, b;
    uint64_t rate, delay, queue;
    double loss;
    uint64_t seeds[2];
    words >> a >> b >> rate >> delay >> queue >> loss >> seeds[0] >> seeds[1];
    PointToPointHelper helper;
    // The device's queue alone drops, so that its traces tell of all drops.
    helper.DisableFlowControl();
    helper.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate)));
    helper.SetChannelAttribute("Delay", TimeValue(NanoSeconds(delay)));
    helper.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(QueueSize(std::to_string(queue) + "p")));
    NetDeviceContainer devices = helper.Install(At(a), At(b));
    const std::string names[2] = {a, b};
    for (int side = 0; side < 2; ++side) {
      const std::string name = names[side] + "->" + names[1 - side];
      auto device = DynamicCast<PointToPointNetDevice>(devices.Get(side));
      auto other = DynamicCast<PointToPointNetDevice>(devices.Get(1 - side));
      auto ip = At(names[side])->GetObject<Ipv4>();
      const uint32_t interface = ip->AddInterface(device);
      const std::string own = "10." + std::to_string(100 + side) + "." + std::to_string(links_) + ".1";
      ip->AddAddress(interface, Ipv4InterfaceAddress(Ipv4Address(own.c_str()), Ipv4Mask("255.255.255.255")));
      ip->SetUp(interface);
      interfaces_[{names[side], names[1 - side]}] = interface;
      // A source's first link is not shared with what passes through it.
      const bool first = names[side][0] == 'T';
      if (first || trace.is_open())
        device->GetQueue()->TraceConnectWithoutContext("Enqueue", MakeBoundCallback(&OnQueued, name, first, std::string("queued")));
      device->GetQueue()->TraceConnectWithoutContext("Drop", MakeBoundCallback(&OnQueued, name, first, std::string("full")));
      if (loss > 0) {
        other->SetReceiveErrorModel(CreateObject<DrawnLoss>(loss, seeds[side]));
        other->TraceConnectWithoutContext("PhyRxDrop", MakeBoundCallback(&OnLost, name));
      }
    }
    ++links_;
  }

  // Have packets for `to`, from `source`, go along `path`, whose last node has the address.
  void Pin(const std::vector<std::string>& path, Ipv4Address to, Ipv4Address source) {
    for (size_t hop = 0; hop + 1 < path.size(); ++hop) {
      auto routes = DynamicCast<Pinned>(At(path[hop])->GetObject<Ipv4>()->GetRoutingProtocol());
      routes->Add(to, interfaces_.at({path[hop], path[hop + 1]}), source);
    }
    auto ip = At(path.back())->GetObject<Ipv4>();
    const uint32_t interface = interfaces_.at({path.back(), path[path.size() - 2]});
    ip->AddAddress(interface, Ipv4InterfaceAddress(to, Ipv4Mask("255.255.255.255")));
  }

 private:
  std::map<std::string, Ptr<Node>> nodes_;
  std::map<std::pair<std::string, std::string>, uint32_t> interfaces_;
  int links_ = 0;
};

// Writes of one size at a constant rate, each to a stream that is drawn, or with a rate of 0 as many as the buffer takes; the reader takes
// them in their order.
class Flow {
 public:
  Flow(std::istream& words, int number) : number_(number), draws_(0) {
    uint64_t seed;
    words >> name_ >> rate_bps_ >> payload_bytes_ >> frame_bytes_ >> seed;
    draws_ = SplitMix64(seed);
    if (rate_bps_ == 0) return;
    const uint64_t work = payload_bytes_ * 8ull * 1000000000ull;
    gap_ = work / rate_bps_;
    remainder_ = work % rate_bps_;
  }

  void AddStream(Network& network, std::istream& words) {
    double weight;
    words >> weight;
    std::vector<std::string> path;
    for (std::string node; words >> node;) path.push_back(node);
    const int index = static_cast<int>(streams_.size());
    const std::string place = std::to_string(number_) + "." + std::to_string(index + 1);
    const Ipv4Address source(("10.1." + place).c_str()), sink(("10.2." + place).c_str());
    network.Pin(path, sink, source);
    network.Pin(std::vector<std::string>(path.rbegin(), path.rend()), source, sink);
    streams_.push_back(Stream{weight, static_cast<uint16_t>(10000 + 100 * number_ + index), source, sink, nullptr, 0, {}});
    ends_ = {network.At(path.front()), network.At(path.back())};
    total_weight_ += weight;
  }

  void Start() {
    for (size_t index = 0; index < streams_.size(); ++index) {
      Stream& stream = streams_[index];
      auto listener = Socket::CreateSocket(ends_.second, TcpSocketFactory::GetTypeId());
      listener->Bind(InetSocketAddress(stream.sink, kSinkPort));
      listener->Listen();
      listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(), MakeCallback(&Flow::OnAccept, this));
      stream.socket = Socket::CreateSocket(ends_.first, TcpSocketFactory::GetTypeId());
      const uint16_t port = stream.port;
      stream.socket->TraceConnectWithoutContext("CongState", MakeBoundCallback(&OnState, port));
      stream.socket->TraceConnectWithoutContext("CongestionWindow", MakeBoundCallback(&OnWindow, "cwnd", port));
      stream.socket->TraceConnectWithoutContext("SlowStartThreshold", MakeBoundCallback(&OnWindow, "ssthresh", port));
      stream.socket->Bind(InetSocketAddress(stream.source, port));
      stream.socket->SetConnectCallback(MakeCallback(&Flow::OnOpen, this), MakeNullCallback<void, Ptr<Socket>>());
      stream.socket->Connect(InetSocketAddress(stream.sink, kSinkPort));
    }
  }

  void Print(double seconds) const {
    std::cout << "flow " << name_ << ' ' << read_ * payload_bytes_ * 8.0 / seconds << ' ' << (read_ ? delay_s_ / read_ : 0.0) << ' '
              << ticks_ << ' ' << skipped_ << '\n';
    for (const Stream& stream : streams_) {
      const Counts& seen = counts[stream.port];
      std::cout << "stream " << name_ << ' ' << seen.data << ' ' << seen.again << ' ' << seen.dropped << ' ' << seen.recoveries << ' '
                << seen.timeouts << ' ' << stream.received / seconds * 8 << '\n';
    }
  }

 private:
  struct Frame {
    uint64_t number;
    int64_t written;
  };
  struct Stream {
    double weight;
    uint16_t port;
    Ipv4Address source, sink;
    Ptr<Socket> socket;
    uint64_t received;
    std::deque<Frame> frames;
  };

  void OnOpen(Ptr<Socket>) {
    if (++open_ < streams_.size()) return;
    if (rate_bps_ > 0) {
      Simulator::ScheduleNow(&Flow::Tick, this);
      return;
    }
    Stream& only = streams_.front();
    only.socket->SetSendCallback(MakeCallback(&Flow::Fill, this));
    Fill(only.socket, only.socket->GetTxAvailable());
  }

  void Fill(Ptr<Socket> socket, uint32_t) {
    while (socket->GetTxAvailable() >= frame_bytes_) Write(streams_.front());
  }

  void Write(Stream& stream) {
    stream.frames.push_back(Frame{written_++, Simulator::Now().GetNanoSeconds()});
    stream.socket->Send(Create<Packet>(frame_bytes_));
  }

  void OnAccept(Ptr<Socket> socket, const Address&) {
    Address local;
    socket->GetSockName(local);
    const Ipv4Address address = InetSocketAddress::ConvertFrom(local).GetIpv4();
    for (Stream& stream : streams_)
      if (stream.sink == address) by_socket_[socket] = &stream;
    socket->SetRecvCallback(MakeCallback(&Flow::OnData, this));
  }

  size_t Draw() {
    if (streams_.size() == 1) return 0;
    double point = draws_.NextUnit() * total_weight_;
    for (size_t index = 0; index + 1 < streams_.size(); ++index) {
      if (point < streams_[index].weight) return index;
      point -= streams_[index].weight;
    }
    return streams_.size() - 1;
  }

  void Tick() {
    carry_ += remainder_;
    const bool more = carry_ >= rate_bps_;
    if (more) carry_ -= rate_bps_;
    Simulator::Schedule(NanoSeconds(gap_ + more), &Flow::Tick, this);
    ++ticks_;
    Stream& stream = streams_[Draw()];
    if (stream.socket->GetTxAvailable() < frame_bytes_) {
      ++skipped_;
      return;
    }
    Write(stream);
  }

  void OnData(Ptr<Socket> socket) {
    Stream& stream = *by_socket_.at(socket);
    while (Ptr<Packet> packet = socket->Recv()) {
      if (packet->GetSize() == 0) break;
      uint64_t before = stream.received / frame_bytes_;
      stream.received += packet->GetSize();
      for (; before < stream.received / frame_bytes_; ++before) {
        ahead_[stream.frames.front().number] = stream.frames.front().written;
        stream.frames.pop_front();
      }
    }
    const int64_t now = Simulator::Now().GetNanoSeconds();
    while (!ahead_.empty() && ahead_.begin()->first == read_) {
      delay_s_ += (now - ahead_.begin()->second) * 1e-9;
      ahead_.erase(ahead_.begin());
      ++read_;
    }
  }

  int number_;
  std::string name_;
  uint64_t rate_bps_ = 0, gap_ = 0, remainder_ = 0, carry_ = 0;
  uint32_t payload_bytes_ = 0, frame_bytes_ = 0;
  SplitMix64 draws_;
  std::deque<Stream> streams_;
  std::pair<Ptr<Node>, Ptr<Node>> ends_;
  double total_weight_ = 0, delay_s_ = 0;
  size_t open_ = 0;
  uint64_t written_ = 0, read_ = 0, ticks_ = 0, skipped_ = 0;
  std::map<Ptr<Socket>, Stream*> by_socket_;
  std::map<uint64_t, int64_t> ahead_;
};

void SetDefaults(const std::string& attribute, const std::string& value) { Config::SetDefault(attribute, StringValue(value)); }

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) trace.open(argv[1]);
  Network network;
  std::deque<Flow> flows;
  double seconds = 0;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string kind, key, value;
    words >> kind;
    if (kind == "default" && words >> key >> value) SetDefaults(key, value);
    if (kind == "duration") words >> seconds;
    // Of what ns-3 itself draws: where BBR begins to probe.
    if (uint32_t seed; kind == "seed" && words >> seed) RngSeedManager::SetSeed(seed);
    if (kind == "link") network.Join(words);
    if (kind == "flow") flows.emplace_back(words, static_cast<int>(flows.size()) + 1);
    if (kind == "path") flows.back().AddStream(network, words);
  }
  for (Flow& flow : flows) Simulator::ScheduleNow(&Flow::Start, &flow);
  Simulator::Stop(Seconds(seconds));
  Simulator::Run();
  for (const Flow& flow : flows) flow.Print(seconds);
  Simulator::Destroy();
}
